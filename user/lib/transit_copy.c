/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "file.h"
#include "transit_copy.h"

#define MAGIC 0x7469736e61727431ull
#define T0_MS 100

struct head {
	uint64_t magic;
	uint64_t checksum; /* xxh64 of all that follows */
	uint64_t realtime; /* seconds, when it was written */
	uint64_t n;
};

struct record {
	uint32_t pool, slots, slot;
	uint32_t age;  /* deciseconds since t0, when it was written */
	uint32_t base; /* with SHUNT_SLOT_LEARN */
};

struct transit_copy {
	struct record *records;
	size_t n, room;
	uint64_t realtime;
};

static uint64_t realtime(void)
{
	return (uint64_t)time(NULL);
}

int transit_copy_new(struct transit_copy **out)
{
	struct transit_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	copy->realtime = realtime();
	*out = copy;
	return 0;
}

void transit_copy_free(struct transit_copy *copy)
{
	if (copy)
		free(copy->records);
	free(copy);
}

static int append(struct transit_copy *copy, const struct record *record)
{
	struct record *grown;

	if (copy->n == copy->room) {
		grown = reallocarray(copy->records, copy->room ? 2 * copy->room : 1024, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		copy->records = grown;
		copy->room = copy->room ? 2 * copy->room : 1024;
	}
	copy->records[copy->n++] = *record;
	return 0;
}

int transit_copy_add(struct transit_copy *copy, uint32_t pool, const struct transit *transit, uint64_t now_ms)
{
	int ret = 0;

	for (uint32_t i = 0; i < transit->slots && !ret; i++) {
		struct record record = {
			.pool = pool,
			.slots = transit->slots,
			.slot = i,
			.base = transit->base[i],
			.age = (uint32_t)(now_ms / T0_MS) - transit->t0[i],
		};

		/* Of a settled slot only the entries mattered, and they are gone. */
		if ((transit->owner[i] & SHUNT_SLOT_TRACKED) &&
		    (transit->owner[i] & SHUNT_BACKEND_NONE) != (transit->base[i] & SHUNT_BACKEND_NONE))
			ret = append(copy, &record);
	}
	return ret;
}

void transit_copy_take(const struct transit_copy *copy, uint32_t pool, uint64_t now_ms, struct transit *transit)
{
	uint64_t now = realtime(), passed = now > copy->realtime ? now - copy->realtime : 0;

	for (size_t i = 0; i < copy->n; i++) {
		const struct record *record = &copy->records[i];

		if (record->pool != pool || record->slots != transit->slots || record->slot >= transit->slots)
			continue;
		transit->owner[record->slot] = SHUNT_BACKEND_NONE | SHUNT_SLOT_TRACKED;
		transit->base[record->slot] = (uint16_t)record->base;
		transit->t0[record->slot] =
			(uint32_t)(now_ms / T0_MS) - record->age - (uint32_t)(passed * (1000 / T0_MS));
	}
}

/* ---- the file ---- */

static uint64_t checksum_of(const struct head *head, const struct record *records)
{
	uint64_t sum = XXH64(records, head->n * sizeof(*records), 0);

	return XXH64(&head->realtime, sizeof(head->realtime), sum);
}

static int write_file(const struct transit_copy *copy, int dir)
{
	struct head head = {.magic = MAGIC, .realtime = copy->realtime, .n = copy->n};
	const struct iovec parts[] = {{&head, sizeof(head)}, {copy->records, copy->n * sizeof(*copy->records)}};

	head.checksum = checksum_of(&head, copy->records);
	return file_replace(dir, TRANSIT_COPY_FILE, parts, 2);
}

int transit_copy_save(const struct transit_copy *copy, const char *dir)
{
	int ret = 0, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (copy->n)
		ret = write_file(copy, fd);
	else if (unlinkat(fd, TRANSIT_COPY_FILE, 0) && errno != ENOENT)
		ret = -errno;
	close(fd);
	return ret;
}

static int read_file(FILE *file, struct transit_copy *copy)
{
	struct head head;
	struct stat stat;

	if (fstat(fileno(file), &stat))
		return -errno;
	if (fread(&head, sizeof(head), 1, file) != 1 || head.magic != MAGIC ||
	    head.n != ((uint64_t)stat.st_size - sizeof(head)) / sizeof(struct record))
		return -EUCLEAN;
	copy->records = calloc(head.n + 1, sizeof(*copy->records));
	if (!copy->records)
		return -ENOMEM;
	if (fread(copy->records, sizeof(*copy->records), head.n, file) != head.n ||
	    checksum_of(&head, copy->records) != head.checksum)
		return -EUCLEAN;
	copy->n = copy->room = head.n;
	copy->realtime = head.realtime;
	return 0;
}

int transit_copy_load(const char *dir, struct transit_copy **out)
{
	struct transit_copy *copy;
	char *path;
	FILE *file;
	int ret = transit_copy_new(&copy);

	if (ret)
		return ret;
	if (asprintf(&path, "%s/" TRANSIT_COPY_FILE, dir) < 0) {
		transit_copy_free(copy);
		return -ENOMEM;
	}
	file = fopen(path, "re");
	ret = file ? read_file(file, copy) : -errno;
	if (file)
		fclose(file);
	free(path);
	if (ret)
		transit_copy_free(copy);
	else
		*out = copy;
	return ret;
}
