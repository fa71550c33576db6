/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP errors from the way behind us: addressed to an outer source of ours, they quote our encapsulation.  A path MTU
 * is taken over at once, for all backends behind the outer address; the daemon sees `backend_path` and restores it in
 * time.
 */
#ifndef SHUNT_BEHIND_BPF_H
#define SHUNT_BEHIND_BPF_H

#include "icmp.bpf.h"

/* The least that a forged error can bring a path down to: RFC 1191's plateau that every host takes, RFC 8200's minimum.
 */
#define PATH_MTU_MIN4 552u
#define PATH_MTU_MIN6 1280u

static __always_inline bool is_ours(const union shunt_address *address)
{
	struct shunt_prefix key = {.length = 128};

	__builtin_memcpy(key.address, address, sizeof(key.address));
	return bpf_map_lookup_elem(&outer_sources, &key);
}

/* The MTU that an error tells, 0 if it tells none. */
static __always_inline __u32 told_mtu(const struct pkt *p, const __u8 *head)
{
	__u32 mtu;

	if (p->ipv6)
		mtu = head[0] == ICMP6_TOO_BIG ? bpf_ntohl(*(__be32 *)(head + 4)) : 0;
	else
		mtu = head[0] == ICMP4_UNREACHABLE && head[1] == 4 ? bpf_ntohs(*(__be16 *)(head + 6)) : 0;
	if (!mtu)
		return 0;
	return mtu < (p->ipv6 ? PATH_MTU_MIN6 : PATH_MTU_MIN4) ? (p->ipv6 ? PATH_MTU_MIN6 : PATH_MTU_MIN4) : mtu;
}

/* Only ever lower it: whoever sends errors cannot raise it.  A state that changed meanwhile is judged again. */
static __always_inline void lower_mtu(struct shunt_backend *backend, struct shunt_path *path, __u32 mtu)
{
	for (int i = 0; i < 4; i++) {
		__u64 state = READ_ONCE(backend->state), next;

		if (SHUNT_BACKEND_MTU(state) <= mtu)
			break;
		next = SHUNT_BACKEND_WITH_MTU(state, mtu);
		if (__sync_val_compare_and_swap(&backend->state, state, next) != state)
			continue;
		path->lowered = bpf_ktime_get_coarse_ns();
		break;
	}
}

/* Is what the error quotes one of our packets to the backend? */
static __always_inline bool sent_to(const struct shunt_backend *backend, const struct quote *q)
{
	if (q->protocol == IPPROTO_UDP)
		return (backend->encap == SHUNT_ENCAP_GUE4 || backend->encap == SHUNT_ENCAP_GUE6) &&
		       backend->port == (__be16)q->ports;
	return (backend->encap == SHUNT_ENCAP_IPIP4 || backend->encap == SHUNT_ENCAP_IPIP6) &&
	       (q->protocol == IPPROTO_IPIP || q->protocol == IPPROTO_IPV6);
}

/* All backends behind the outer address, which share the way there; how many there are.  mtu: 0 for an error without.
 */
__noinline int path_error(struct quote *q, __u32 mtu)
{
	const struct shunt_endpoint *endpoint;
	union shunt_address key;
	int found = 0;

	if (!q)
		return 0;
	key = q->destination;
	endpoint = bpf_map_lookup_elem(&endpoints, &key);
	for (__u32 i = 0; endpoint && i < SHUNT_ENDPOINT_BACKENDS && i < endpoint->count; i++) {
		__u32 id = endpoint->id[i];
		struct shunt_backend *backend = bpf_map_lookup_elem(&backends, &id);
		struct shunt_path *path = bpf_map_lookup_elem(&backend_path, &id);

		if (!backend || !path || !sent_to(backend, q))
			continue;
		if (SHUNT_EXPLAIN) {
			trace_behind(mtu);
			return 1;
		}
		__sync_fetch_and_add(&path->errors, 1);
		if (mtu)
			lower_mtu(backend, path, mtu);
		found++;
	}
	return found;
}

/* For no service.  Anything that does not fit stays the host's. */
SHUNT_STAGE behind_us(struct pkt *p)
{
	struct quote q = {};
	__u8 *head;

	if (!is_icmp(p) || !is_ours(&p->destination) || parse_header(p) != SHUNT_CONTINUE || !is_icmp(p) ||
	    p->part != PKT_WHOLE)
		return SHUNT_PASS_NOT_SERVICE;
	head = pkt_l4(p);
	if ((void *)(head + ICMP_HEADER) > p->data_end || !is_error(p, head[0]) ||
	    read_quote(p, &q) != SHUNT_CONTINUE || q.part == PKT_LATER || !quotes_from(&q, &p->destination))
		return SHUNT_PASS_NOT_SERVICE;
	return path_error(&q, told_mtu(p, head)) ? SHUNT_DROP_PATH_ERROR : SHUNT_PASS_NOT_SERVICE;
}

#endif
