/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The backend's program, compiled natively, on one frame.  Input: a byte of options (bit 0: loaded for frames of
 * several segments; 1: the driver refuses to take the header away), two bytes of length beyond the first segment, the
 * frame.
 *
 * Whatever the frame is: nothing outside it is read or written, exactly one reason is counted, what is not unwrapped is
 * as it was, and what is unwrapped comes from a listed source, is for a listed destination, and is the inner packet
 * with no other change than its ECN bits.
 */
#include "shunt_decap.bpf.c"

#include "addr.h"
#include "judge.h"
#include "native.h"

/* As in tests/packets/cases_decap.py, so that its frames are good seeds. */
static struct native_prefix source_values[4], inner_values[3];
static const char *const source_texts[] = {"10.1.0.2/32", "10.8.0.0/15", "fd00:1::2/128", "2001:db8:ffff::/48"};
static const char *const inner_texts[] = {"192.0.2.0/27", "203.0.113.7/32", "2001:db8::/123"};
static struct shunt_reasons reason_values;

static void fill(struct native_prefix *list, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		NATIVE_CHECK(!prefix_parse(texts[i], &list[i].prefix), "%s", texts[i]);
		list[i].value = strchr(texts[i], ':') ? 6 : 4;
	}
}

/* The list once more, by the text: the first bits of an address of a family. */
static bool allowed(const char *const *texts, size_t n, const unsigned char *address, int family)
{
	for (size_t i = 0; i < n; i++) {
		struct shunt_prefix prefix;
		unsigned int same = 0, skip = family == 4 ? 12 : 0, bits;

		prefix_parse(texts[i], &prefix);
		if ((strchr(texts[i], ':') ? 6 : 4) != family)
			continue;
		bits = prefix.length - 8 * skip;
		while (same < bits && !((address[same / 8] ^ prefix.address[skip + same / 8]) >> (7 - same % 8) & 1))
			same++;
		if (same == bits)
			return true;
	}
	return false;
}

/* What was given to the host is the frame without an outer header. */
static void judge_unwrapped(const unsigned char *before, size_t size)
{
	const unsigned char *after = native_data();
	size_t removed = size - native_size();
	int outer, inner;
	size_t at = judge_link(before, size, &outer);
	const unsigned char *ip = before + at, *was = ip + removed, *is = after + at;

	NATIVE_CHECK(outer && removed == (outer == 4 ? (ip[0] & 15) * 4u : 40), "%zu bytes removed", removed);
	inner = ip[outer == 4 ? 9 : 6] == 4 ? 4 : 6;
	NATIVE_CHECK(memcmp(after, before, at - 2) == 0, "link header");
	NATIVE_CHECK(judge16(after + at - 2) == (inner == 4 ? 0x0800 : 0x86dd), "ethertype");
	NATIVE_CHECK(allowed(source_texts, 4, ip + (outer == 4 ? 12 : 8), outer), "source");
	NATIVE_CHECK(allowed(inner_texts, 3, was + (inner == 4 ? 16 : 24), inner), "destination");
	NATIVE_CHECK(judge_length(ip) <= size - at + native.beyond, "%zu bytes claimed outside", judge_length(ip));
	NATIVE_CHECK(judge_length(was) + removed <= judge_length(ip), "%zu bytes claimed inside", judge_length(was));
	NATIVE_CHECK(is[0] == was[0] && was[0] >> 4 == inner, "version");
	if (inner == 4) {
		size_t header = (was[0] & 15) * 4u;

		NATIVE_CHECK((is[1] ^ was[1]) < 4, "DSCP");
		NATIVE_CHECK(memcmp(is + 2, was + 2, 8) == 0, "inner header");
		NATIVE_CHECK(memcmp(is + 12, was + 12, size - at - removed - 12) == 0, "inner packet");
		if (is + header <= after + native_size())
			NATIVE_CHECK(judge_sum(is, header) % 0xffff == judge_sum(was, header) % 0xffff, "checksum");
	} else {
		NATIVE_CHECK(((is[1] ^ was[1]) & 0xcf) == 0, "traffic class");
		NATIVE_CHECK(memcmp(is + 2, was + 2, size - at - removed - 2) == 0, "inner packet");
	}
}

/* Returns the reason. */
static int judge(const unsigned char *frame, size_t size, int verdict)
{
	int reason = judge_reason(reason_values.packets, SHUNT_REASONS_ROOM);
	bool same = native_size() == size && memcmp(native_data(), frame, size) == 0;

	NATIVE_CHECK(reason >= SHUNT_DECAP_PASS_NOT_TUNNEL, "not exactly one reason of this program");
	switch (judge_reasons[reason].class) {
	case JUDGE_PASS:
		NATIVE_CHECK(verdict == XDP_PASS && same, "%s", judge_reasons[reason].name);
		break;
	case JUDGE_DROP:
		NATIVE_CHECK(verdict == XDP_DROP, "%s", judge_reasons[reason].name);
		/* The ECN bits are written before the driver says no. */
		NATIVE_CHECK(same || reason == SHUNT_DECAP_DROP_ADJUST, "%s", judge_reasons[reason].name);
		break;
	case JUDGE_FORWARD:
		NATIVE_CHECK(verdict == XDP_PASS && !native.no_adjust, "%d", verdict);
		judge_unwrapped(frame, size);
		break;
	default:
		NATIVE_CHECK(0, "%s", judge_reasons[reason].name);
	}
	return reason;
}

/* One input.  Returns the reason. */
static int try_frame(const uint8_t *data, size_t size)
{
	struct shunt_config loaded = {.frags = data[0] & 1};

	native_configure(&loaded);
	native.no_adjust = data[0] & 2;
	native.beyond = loaded.frags ? judge16(data + 1) : 0;
	native_frame(data + 3, size - 3, 1);
	return judge(data + 3, size - 3, shunt_decap(&native.context));
}

/* An empty packet to 192.0.2.10 from 10.1.0.2: had the lists been filled wrongly, no input would get beyond them. */
static const uint8_t good_frame[] = "\0\0\0"
				    "\2\0\0\0\0\1\2\0\0\0\14\1\x08\0"
				    "\x45\0\0\x28\0\1\x40\0\x40\4\0\0\x0a\1\0\2\x0a\1\0\x0b"
				    "\x45\0\0\x14\0\1\x40\0\x40\6\0\0\xc6\x33\x64\7\xc0\0\2\x0a";

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fill(source_values, source_texts, 4);
	fill(inner_values, inner_texts, 3);
	native_add(&decap_sources, NATIVE_PREFIXES, 4, 0, source_values);
	native_add(&decap_inner, NATIVE_PREFIXES, 3, 0, inner_values);
	native_add(&decap_reasons, NATIVE_ARRAY, 1, sizeof(reason_values), &reason_values);
	NATIVE_CHECK(try_frame(good_frame, sizeof(good_frame)) == SHUNT_DECAP_UNWRAPPED,
		     "the good frame is not unwrapped");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3 || size - 3 > NATIVE_FRAME_MAX)
		return -1;
	try_frame(data, size);
	return 0;
}
