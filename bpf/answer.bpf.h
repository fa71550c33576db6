/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that shunt sends by itself, back to where the client's came from: echo replies, ICMP errors and TCP resets.
 * Errors and resets are built from zero and never more than `error_interval` allows; what RFC 1122 (3.2.2), RFC 1812
 * (4.3.2.7) and RFC 4443 (2.4) forbid is not answered.
 */
#ifndef SHUNT_ANSWER_BPF_H
#define SHUNT_ANSWER_BPF_H

#include "csum.bpf.h"
#include "maps.bpf.h"
#include "pkt.bpf.h"

enum answer_kind { ANSWER_TOO_BIG, ANSWER_TTL, ANSWER_REFUSE };

/* A request for an answer; `otherwise` is the reason where none may be given. */
struct answer {
	__u32 kind; /* enum answer_kind */
	__u32 l3, l4;
	__u32 ipv6, tcp;
	__u32 mtu; /* that the client may use */
	__u32 interval, burst;
	__s32 given, otherwise; /* enum shunt_reason */
};

#define LINK_MAX 22 /* bytes of Ethernet header and two tags */

#define ICMP_HEADER 8u

/* As much of the packet as fits 576 bytes (RFC 1812, 4.3.2.3) or the minimal MTU of IPv6 (RFC 4443, 2.4). */
#define QUOTE_MAX4 (576u - sizeof(struct iphdr) - ICMP_HEADER)
#define QUOTE_MAX6 (1280u - sizeof(struct ipv6hdr) - ICMP_HEADER)

/* On this CPU one each `interval` ns, and `burst` of them at once after a silence (a generic cell rate algorithm). */
static __always_inline bool may_answer(const struct answer *a)
{
	__u64 now = bpf_ktime_get_coarse_ns(), saved;
	__u32 zero = 0;
	__u64 *next = bpf_map_lookup_elem(&error_clock, &zero);

	if (!next || !a->burst)
		return false;
	saved = (__u64)a->interval * (a->burst - 1);
	if (!SHUNT_EXPLAIN && now > saved && *next < now - saved)
		*next = now - saved;
	if (*next > now)
		return false;
	if (!SHUNT_EXPLAIN)
		*next += a->interval;
	return true;
}

/* Copy the link header to the new front of the frame, addresses swapped. */
static __always_inline void write_link(void *data, const __u8 *link, __u32 l3)
{
	__u16 *to = data;
	const __u16 *from = (const void *)link;

#pragma unroll
	for (__u32 i = 0; i < 3; i++) {
		to[i] = from[i + 3];
		to[i + 3] = from[i];
	}
#pragma unroll
	for (__u32 i = 6; i < LINK_MAX / 2; i++)
		if (2 * i < l3)
			to[i] = from[i];
}

static __always_inline __u64 frame_length(struct xdp_md *ctx)
{
	return config.frags ? bpf_xdp_get_buff_len(ctx) : ctx->data_end - ctx->data;
}

/* Sum of the 16-bit words of an IPv6 pseudo header (RFC 8200, section 8.1), addresses as they stand in `ip6`. */
static __always_inline __u32 pseudo6(const struct ipv6hdr *ip6, __u32 length, __u8 next)
{
	const __u16 *word = (const void *)&ip6->saddr;
	__u32 sum = bpf_htons(length) + bpf_htons(next);

#pragma unroll
	for (int i = 0; i < 16; i++)
		sum += word[i];
	return sum;
}

static __always_inline void fill4(struct iphdr *ip, __be32 from, __be32 to, __u32 length, __u8 protocol)
{
	const __u16 *word = (const void *)ip;
	__u32 sum = 0;

	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tot_len = bpf_htons(length),
		.frag_off = bpf_htons(SHUNT_IP_DF),
		.ttl = SHUNT_OUTER_TTL,
		.protocol = protocol,
		.saddr = from,
		.daddr = to,
	};
#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += word[i];
	ip->check = (__sum16)~csum_fold(sum);
}

static __always_inline void fill6(struct ipv6hdr *ip6, const struct in6_addr *from, const struct in6_addr *to,
				  __u32 payload, __u8 next)
{
	*ip6 = (struct ipv6hdr){
		.version = 6,
		.payload_len = bpf_htons(payload),
		.nexthdr = next,
		.hop_limit = SHUNT_OUTER_TTL,
		.saddr = *from,
		.daddr = *to,
	};
}

struct icmp_error {
	__u8 type, code;
	__sum16 check;
	__be32 rest; /* v4: unused and MTU; v6: MTU */
};

static __always_inline struct icmp_error error_of(const struct answer *a)
{
	struct icmp_error e = {};

	if (a->kind == ANSWER_TOO_BIG) {
		e.type = a->ipv6 ? 2 : 3;
		e.code = a->ipv6 ? 0 : 4;
		e.rest = bpf_htonl(a->mtu);
	} else if (a->kind == ANSWER_TTL) {
		e.type = a->ipv6 ? 3 : 11;
	} else {
		e.type = a->ipv6 ? 1 : 3;
		e.code = a->ipv6 ? 4 : 3;
	}
	return e;
}

/* Cut the frame to `length` bytes. */
static __always_inline bool cut_to(struct xdp_md *ctx, __u32 length)
{
	__u64 frame = frame_length(ctx);

	return frame >= length && (frame == length || !bpf_xdp_adjust_tail(ctx, (int)length - (int)frame));
}

/* Cut the frame to its link header and the quote, which lies in the first segment; the bytes of the quote, or 0. */
static __always_inline __u32 cut_to_quote(struct xdp_md *ctx, const struct answer *a, __u32 length, __u32 max)
{
	__u32 quote = length < max ? length : max, here = ctx->data_end - ctx->data;

	if (a->l3 > here)
		return 0;
	if (quote > here - a->l3)
		quote = here - a->l3;
	return cut_to(ctx, a->l3 + quote) ? quote : 0;
}

/*
 * The Internet checksum's sum over the frame's `length` bytes from `offset` on (at most an error's), or -1.  By words,
 * because no helper takes a variable length up to a packet's end; so errors stay cheap by their rate, not by their sum.
 */
__noinline int sum_frame(struct xdp_md *ctx, __u32 offset, __u32 length)
{
	void *from = (void *)(long)ctx->data + (offset & SHUNT_L4_MASK), *end = (void *)(long)ctx->data_end;
	__u8 last[4] = {}, *tail = from + (length & 0x7fc);
	__u64 sum = 0;

	for (__u32 i = 0; i < ICMP_HEADER + QUOTE_MAX6; i += 4) {
		__u32 *word = from + i;

		if (i + 4 > length)
			break;
		if ((void *)(word + 1) > end)
			return -1;
		sum += *word;
	}
	for (__u32 i = 0; i < 3; i++) {
		if (i >= (length & 3))
			break;
		if ((void *)(tail + i + 1) > end)
			return -1;
		last[i] = tail[i];
	}
	sum += *(__u32 *)last;
	sum = (sum & 0xffffffff) + (sum >> 32);
	return csum_fold((__u32)(sum & 0xffff) + (__u32)(sum >> 16 & 0xffff) + (__u32)(sum >> 32));
}

__noinline int answer_error4(struct xdp_md *ctx, struct answer *a)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u8 link[LINK_MAX + 2];
	struct icmp_error *icmp;
	struct iphdr *ip;
	__be32 from, to;
	__u32 quote, l3;
	int sum;

	if (!a)
		return SHUNT_DROP_TTL;
	l3 = a->l3 & 31;
	ip = data + l3;
	if ((void *)(ip + 1) > end || data + sizeof(link) > end)
		return a->otherwise;
	__builtin_memcpy(link, data, sizeof(link));
	from = ip->daddr;
	to = ip->saddr;
	quote = cut_to_quote(ctx, a, bpf_ntohs(ip->tot_len), QUOTE_MAX4);
	if (quote < sizeof(*ip) || bpf_xdp_adjust_head(ctx, -(int)(sizeof(*ip) + ICMP_HEADER)))
		return SHUNT_DROP_HEADROOM;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	ip = data + l3;
	icmp = (void *)(ip + 1);
	if ((void *)(icmp + 1) > end || data + sizeof(link) > end)
		return SHUNT_DROP_HEADROOM;
	write_link(data, link, l3);
	fill4(ip, from, to, sizeof(*ip) + ICMP_HEADER + quote, IPPROTO_ICMP);
	*icmp = error_of(a);
	sum = sum_frame(ctx, l3 + sizeof(*ip), ICMP_HEADER + quote);
	if (sum < 0)
		return SHUNT_DROP_HEADROOM;
	icmp->check = (__sum16)~sum;
	return SHUNT_CONTINUE;
}

__noinline int answer_error6(struct xdp_md *ctx, struct answer *a)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u8 link[LINK_MAX + 2];
	struct in6_addr from, to;
	struct icmp_error *icmp;
	struct ipv6hdr *ip6;
	__u32 quote, l3;
	int sum;

	if (!a)
		return SHUNT_DROP_TTL;
	l3 = a->l3 & 31;
	ip6 = data + l3;
	if ((void *)(ip6 + 1) > end || data + sizeof(link) > end)
		return a->otherwise;
	__builtin_memcpy(link, data, sizeof(link));
	from = ip6->daddr;
	to = ip6->saddr;
	quote = cut_to_quote(ctx, a, sizeof(*ip6) + bpf_ntohs(ip6->payload_len), QUOTE_MAX6);
	if (quote < sizeof(*ip6) || bpf_xdp_adjust_head(ctx, -(int)(sizeof(*ip6) + ICMP_HEADER)))
		return SHUNT_DROP_HEADROOM;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	ip6 = data + l3;
	icmp = (void *)(ip6 + 1);
	if ((void *)(icmp + 1) > end || data + sizeof(link) > end)
		return SHUNT_DROP_HEADROOM;
	write_link(data, link, l3);
	fill6(ip6, &from, &to, ICMP_HEADER + quote, IPPROTO_ICMPV6);
	*icmp = error_of(a);
	sum = sum_frame(ctx, l3 + sizeof(*ip6), ICMP_HEADER + quote);
	if (sum < 0)
		return SHUNT_DROP_HEADROOM;
	icmp->check = (__sum16)~csum_fold((__u32)sum + pseudo6(ip6, ICMP_HEADER + quote, IPPROTO_ICMPV6));
	return SHUNT_CONTINUE;
}

/* ---- TCP resets (RFC 9293, section 3.10.7.1) ---- */

struct tcp_header {
	__be16 source, destination;
	__be32 sequence, acknowledged;
	__u8 offset, flags;
	__be16 window;
	__sum16 check;
	__be16 urgent;
};

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

static __always_inline struct tcp_header reset_for(const struct tcp_header *tcp, __u32 payload)
{
	struct tcp_header rst = {
		.source = tcp->destination,
		.destination = tcp->source,
		.offset = 5 << 4,
		.flags = TCP_RST,
	};

	if (tcp->flags & TCP_ACK) {
		rst.sequence = tcp->acknowledged;
	} else {
		payload += !!(tcp->flags & TCP_SYN) + !!(tcp->flags & TCP_FIN);
		rst.acknowledged = bpf_htonl(bpf_ntohl(tcp->sequence) + payload);
		rst.flags |= TCP_ACK;
	}
	return rst;
}

static __always_inline __u32 sum_reset(const struct tcp_header *rst)
{
	const __u16 *word = (const void *)rst;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += word[i];
	return sum;
}

__noinline int answer_reset(struct xdp_md *ctx, struct answer *a)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *ip;
	__u8 link[LINK_MAX + 2];
	struct in6_addr from = {}, to = {};
	struct tcp_header *tcp, rst;
	__u32 l3, total, header;

	if (!a)
		return SHUNT_DROP_UNKNOWN_PORT;
	l3 = a->l3 & 31;
	header = a->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	ip = data + l3;
	tcp = data + (a->l4 & SHUNT_L4_MASK);
	if (data + sizeof(link) > end || ip + sizeof(struct ipv6hdr) > end || (void *)(tcp + 1) > end)
		return a->otherwise;
	__builtin_memcpy(link, data, sizeof(link));
	if (a->ipv6) {
		from = ((struct ipv6hdr *)ip)->daddr;
		to = ((struct ipv6hdr *)ip)->saddr;
		total = sizeof(struct ipv6hdr) + bpf_ntohs(((struct ipv6hdr *)ip)->payload_len);
	} else {
		from.in6_u.u6_addr32[3] = ((struct iphdr *)ip)->daddr;
		to.in6_u.u6_addr32[3] = ((struct iphdr *)ip)->saddr;
		total = bpf_ntohs(((struct iphdr *)ip)->tot_len);
	}
	rst = reset_for(tcp, total - (a->l4 - a->l3) - (tcp->offset >> 4) * 4);
	if (!cut_to(ctx, l3 + header + sizeof(rst)))
		return SHUNT_DROP_HEADROOM;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	ip = data + l3;
	if (data + sizeof(link) > end || ip + sizeof(struct iphdr) + sizeof(rst) > end)
		return SHUNT_DROP_HEADROOM;
	write_link(data, link, l3);
	if (a->ipv6) {
		if (ip + sizeof(struct ipv6hdr) + sizeof(rst) > end)
			return SHUNT_DROP_HEADROOM;
		fill6(ip, &from, &to, sizeof(rst), IPPROTO_TCP);
		rst.check = (__sum16)~csum_fold(sum_reset(&rst) + pseudo6(ip, sizeof(rst), IPPROTO_TCP));
		*(struct tcp_header *)(ip + sizeof(struct ipv6hdr)) = rst;
	} else {
		struct iphdr *ip4 = ip;

		fill4(ip4, from.in6_u.u6_addr32[3], to.in6_u.u6_addr32[3], sizeof(*ip4) + sizeof(rst), IPPROTO_TCP);
		rst.check = (__sum16)~csum_fold(sum_reset(&rst) + (ip4->saddr & 0xffff) + (ip4->saddr >> 16) +
						(ip4->daddr & 0xffff) + (ip4->daddr >> 16) + bpf_htons(sizeof(rst)) +
						bpf_htons(IPPROTO_TCP));
		*(struct tcp_header *)(ip4 + 1) = rst;
	}
	return SHUNT_CONTINUE;
}

/* Sends it; the reason that becomes of the packet. */
__noinline int give_answer(struct xdp_md *ctx, struct answer *a)
{
	int reason;

	if (!a)
		return SHUNT_BUG_SNAPSHOT;
	if (!may_answer(a))
		return a->otherwise;
	if (a->kind == ANSWER_REFUSE && a->tcp)
		reason = answer_reset(ctx, a);
	else
		reason = a->ipv6 ? answer_error6(ctx, a) : answer_error4(ctx, a);
	return reason == SHUNT_CONTINUE ? a->given : reason;
}

#endif
