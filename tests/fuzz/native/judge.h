/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a frame is, read a second time and by the byte: the fuzz targets' judgement of what a program did. */
#ifndef NATIVE_JUDGE_H
#define NATIVE_JUDGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <linux/bpf.h>

static inline unsigned int judge16(const unsigned char *at)
{
	return (unsigned int)at[0] << 8 | at[1];
}

/* Where the IP header begins behind Ethernet and up to two tags, and its family: 4, 6, or 0 where it is no IP. */
static size_t judge_link(const unsigned char *frame, size_t size, int *family)
{
	size_t at = 12;

	*family = 0;
	for (int tags = 0; at + 2 <= size; tags++, at += 4) {
		unsigned int type = judge16(frame + at);

		if (type == 0x0800 || type == 0x86dd)
			*family = type == 0x0800 ? 4 : 6;
		if (tags == 2 || (type != 0x8100 && type != 0x88a8))
			break;
	}
	at += 2;
	if (at + (*family == 4 ? 20 : 40) > size)
		*family = 0;
	return at;
}

/* Bytes of the IP packet at `at` by its own header. */
static size_t judge_length(const unsigned char *at)
{
	return at[0] >> 4 == 4 ? judge16(at + 2) : 40u + judge16(at + 4);
}

/* The one's complement sum of an IPv4 header with its checksum: 0xffff where that is right. */
static unsigned int judge_sum(const unsigned char *header, size_t size)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < size; i += 2)
		sum += judge16(header + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

enum judge_class { JUDGE_PASS, JUDGE_FORWARD, JUDGE_ANSWER, JUDGE_DROP, JUDGE_BUG };

static const struct {
	const char *name;
	enum judge_class class;
} judge_reasons[] = {
#define SHUNT_COUNTER(id, name, class, sentence) {name, JUDGE_##class},
#include <shunt/counters.def>
#undef SHUNT_COUNTER
};
#define JUDGE_NR_REASONS (sizeof(judge_reasons) / sizeof(judge_reasons[0]))

/* The one reason that was counted; the counters are zero afterwards.  -1 where it was not exactly one. */
static int judge_reason(__u64 *counters, size_t room)
{
	int reason = -1, total = 0;

	for (size_t i = 0; i < room; i++) {
		if (counters[i])
			reason = (int)i;
		total += (int)counters[i];
		counters[i] = 0;
	}
	return total == 1 && reason < (int)JUDGE_NR_REASONS ? reason : -1;
}

#endif
