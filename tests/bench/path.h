/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the packet path's benchmark and its BPF programs share. */
#ifndef BENCH_PATH_H
#define BENCH_PATH_H

#include <linux/types.h>

/* Service addresses: 192.0.2.1 + i, 2001:db8::1 + i, ports 1 + i, eight of each at most. */
#define PATH_SERVICES_SIDE 8

/* Outer destinations: backends are 10.200.<pool>.3 and up, of a larger pool also behind it, the floor's constant is not
 * among them. */
#define PATH_BACKENDS 0x0ac80000
#define PATH_FLOOR 0x0ac80002
#define PATH_FIRST_HOST 3
/* Third byte of the backends that leave, where slots are in transition. */
#define PATH_LEAVING 128

/* Load-time constants of the generator and the sink. */
struct path_traffic {
	__u32 flows;	/* distinct client addresses and ports */
	__u32 services; /* at most 2,000, in turn */
	__u32 ipv6;
	__u32 syn;		 /* TCP flags: SYN instead of ACK */
	__u32 foreign;		 /* destinations that are no service */
	__u32 out;		 /* interface that the frames leave by */
	__u32 length;		 /* of the IP packet, in bytes */
	__u32 gue;		 /* what the sink expects: a UDP and a GUE header behind the outer IPv4 one */
	__u32 third, third_mask; /* third byte of the backend's IPv4 address */
	__u8 destination_mac[6], source_mac[6];
};

/* What the generator keeps: `ordered` takes each flow once, from `next` on, instead of any. */
struct path_order {
	__u32 ordered;
	__u32 next;
};

/* What came out: counted by the sink, per CPU. */
struct path_sink {
	__u64 good, bad;
};

/* Packets that the wrapper runs at a time: the kernel lets one run do 33 tail calls. */
#define PATH_WRAP_LOOP 32

struct path_wrap {
	__u64 packets; /* that were run */
	__u32 first;   /* what the flows' random numbers are made of: this one and those behind it */
	__u32 verdict; /* expected of each packet */
	__u32 verify;  /* look at each frame that comes out */
	__u32 wrong;   /* not 0: some verdict or frame was not right */
};

#endif
