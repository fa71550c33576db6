/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "addr.h"
#include "decap.h"

static int compare(const void *a, const void *b)
{
	const struct shunt_prefix *x = a, *y = b;
	int order = memcmp(x->address, y->address, sizeof(x->address));

	if (order)
		return order;
	return x->length < y->length ? -1 : x->length > y->length;
}

int decap_list(int fd, struct shunt_prefix **out, size_t *n)
{
	struct shunt_prefix *list = calloc(DECAP_PREFIXES_MAX, sizeof(*list));
	struct shunt_prefix *last = NULL;
	size_t count = 0;
	int error = 0;

	if (!list)
		return -ENOMEM;
	while (count < DECAP_PREFIXES_MAX && !error) {
		error = bpf_map_get_next_key(fd, last, &list[count]) ? -errno : 0;
		if (!error)
			last = &list[count++];
	}
	if (error && error != -ENOENT) {
		free(list);
		return error;
	}
	qsort(list, count, sizeof(*list), compare);
	*out = list;
	*n = count;
	return 0;
}

/* Remove what is in old[] and not in the sorted keep[]. */
static int remove_others(int fd, const struct shunt_prefix *old, size_t n_old, const struct shunt_prefix *keep,
			 size_t n)
{
	for (size_t i = 0; i < n_old; i++)
		if (!bsearch(&old[i], keep, n, sizeof(*keep), compare) && bpf_map_delete_elem(fd, &old[i]) &&
		    errno != ENOENT)
			return -errno;
	return 0;
}

static int add_all(int fd, const struct shunt_prefix *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		union shunt_address address;
		__u8 family;

		memcpy(address.byte, prefixes[i].address, sizeof(address.byte));
		family = addr_is_v4(&address) ? 4 : 6;
		if (bpf_map_update_elem(fd, &prefixes[i], &family, BPF_ANY))
			return -errno;
	}
	return 0;
}

int decap_set(int fd, const struct shunt_prefix *prefixes, size_t n)
{
	struct shunt_prefix *sorted, *old;
	size_t n_old;
	int error;

	if (n > DECAP_PREFIXES_MAX)
		return -ENOSPC;
	error = decap_list(fd, &old, &n_old);
	if (error)
		return error;
	sorted = calloc(n + 1, sizeof(*sorted));
	if (!sorted) {
		error = -ENOMEM;
	} else {
		if (n)
			memcpy(sorted, prefixes, n * sizeof(*sorted));
		qsort(sorted, n, sizeof(*sorted), compare);
		error = add_all(fd, sorted, n);
		if (!error || error == -ENOSPC)
			error = remove_others(fd, old, n_old, sorted, n);
		if (!error) /* again: both together may not have fitted */
			error = add_all(fd, sorted, n);
	}
	free(old);
	free(sorted);
	return error;
}
