/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load balancer's program, compiled natively, on one frame.  Input: a byte of options (bit 0: loaded for frames of
 * several segments; 1: no room in front), two bytes of length beyond the first segment, the frame.
 *
 * Whatever the frame is: nothing outside it is read or written, exactly one reason is counted, the verdict is that
 * reason's, a packet that is not for a service (and any other that is not sent) is as it was, and what is sent is the
 * client's packet with one TTL less behind a right outer header.
 */
#include "shunt.bpf.c"

#include "addr.h"
#include "hashkey.h"
#include "judge.h"
#include "native.h"
#include "snapshot.h"

#define ADDRESSES 16
#define SERVICES 32
#define BACKENDS 6
#define INGRESS 7

static _Alignas(64) unsigned char snapshot_value[SHUNT_SNAPSHOT_SIZE(ADDRESSES, SERVICES)];
static _Alignas(64) unsigned char table_value[SHUNT_TABLE_SIZE(SHUNT_SLOTS_S)];
static struct shunt_backend backend_values[BACKENDS];
static uint64_t nexthop_values[3];
static struct shunt_iface iface_values[3] = {
	{}, {.ifindex = INGRESS, .mac = "\2\0\0\0\0\1"}, {.ifindex = 9, .mac = "\2\0\0\0\0\2"}};
static struct shunt_reasons reason_values;
static struct shunt_stats service_values[SERVICES], backend_stat_values[BACKENDS];
static struct shunt_fragment_bucket fragment_values[SHUNT_FRAGMENT_BUCKETS];
static struct transit transit_value;
static struct answer answer_value;
static uint64_t clock_value;
static void *snapshot_inner[1], *table_inner[2], *nothing[1];

/* As in tests/packets/cases.py, so that its frames are good seeds. */
static const struct {
	const char *text;
	bool pass;
} addresses[] = {{"192.0.2.10", false}, {"2001:db8::10", false}, {"192.0.2.20", true}, {"2001:db8::20", true}};
#define N_ADDRESSES (sizeof(addresses) / sizeof(addresses[0]))
static union shunt_address address_values[N_ADDRESSES];

static void build_snapshot(void)
{
	static const uint16_t tcp_ports[] = {80, 443, 7000, 9000};
	struct snapshot_address list[N_ADDRESSES];
	struct snapshot_service services[N_ADDRESSES * 5];
	struct snapshot_content content = {
		.revision = 1, .addresses = list, .n_addresses = N_ADDRESSES, .services = services};
	struct snapshot_capacity capacity = {ADDRESSES, SERVICES};
	const uint8_t key[16] = {1, 2, 3};

	hashkey_expand(key, &content.key);
	for (uint32_t i = 0; i < N_ADDRESSES; i++) {
		NATIVE_CHECK(!addr_parse(addresses[i].text, &address_values[i]), "%s", addresses[i].text);
		list[i] = (struct snapshot_address){address_values[i],
						    addresses[i].pass ? SHUNT_ADDRESS_UNKNOWN_PASS : 0};
		for (uint32_t j = 0; j < 5; j++) {
			size_t n = content.n_services++;

			services[n] = (struct snapshot_service){.address = i,
								.port = j < 4 ? tcp_ports[j] : 0,
								.protocol = j < 4 ? IPPROTO_TCP : IPPROTO_UDP,
								.hash_mode = (uint8_t)(n % SHUNT_NR_HASH_MODES),
								.counter = (uint32_t)n};
		}
	}
	NATIVE_CHECK(!snapshot_build(&content, &capacity, snapshot_value, NULL), "the snapshot");
}

/* Backends 0 and 1 in IPv4 and IPv6, 2 and 3 as they by another interface; 4 is down, 5 has no next hop. */
static void build_backends(void)
{
	for (uint32_t i = 0; i < BACKENDS; i++) {
		struct shunt_backend *backend = &backend_values[i];
		bool ipv6 = i % 2;
		unsigned char *outer = backend->outer;
		uint32_t sum = 0;

		backend->encap = ipv6 ? SHUNT_ENCAP_IPIP6 : SHUNT_ENCAP_IPIP4;
		backend->overhead = ipv6 ? 40 : 20;
		outer[0] = ipv6 ? 0x60 : 0x45;
		outer[ipv6 ? 7 : 8] = SHUNT_OUTER_TTL;
		memset(outer + (ipv6 ? 8 : 12), 0x11, ipv6 ? 32 : 8);
		outer[ipv6 ? 39 : 19] = (unsigned char)i;
		for (size_t at = 0; at < 20; at += 2) {
			uint16_t word;

			memcpy(&word, outer + at, sizeof(word));
			sum += word;
		}
		backend->sum = (sum & 0xffff) + (sum >> 16);
		backend->state = SHUNT_BACKEND_STATE(i == 4 ? SHUNT_BACKEND_PRESENT : SHUNT_BACKEND_USABLE, 0,
						     i == 5 ? 0 : 1 + i / 2 % 2, 1500);
	}
	nexthop_values[1] = 1ull << 48 | 0x0a0000000002ull;
	nexthop_values[2] = 2ull << 48 | 0x0b0000000002ull;
}

static void build_table(void)
{
	struct shunt_table *table = (struct shunt_table *)table_value;
	uint16_t *owner = (uint16_t *)(table_value + SHUNT_TABLE_OWNER(SHUNT_SLOTS_S));

	table->abi = SHUNT_ABI;
	table->slots = 251;
	for (uint16_t i = 0; i < 251; i++)
		owner[i] = i % 20 == 19 ? SHUNT_BACKEND_NONE : i % 20 == 18 ? 4 : i % 20 == 17 ? 5 : i % 4;
}

static bool for_a_service(const unsigned char *frame, size_t size)
{
	union shunt_address to = {.byte = {[10] = 0xff, [11] = 0xff}};
	int family;
	size_t at = judge_link(frame, size, &family);

	if (!family)
		return false;
	if (family == 4)
		memcpy(to.byte + 12, frame + at + 16, 4);
	else
		memcpy(to.byte, frame + at + 24, 16);
	for (size_t i = 0; i < N_ADDRESSES; i++) {
		if (addr_equal(&to, &address_values[i]))
			return addr_is_v4(&to) == (family == 4);
	}
	return false;
}

/* The outer header at `at`, of `room` bytes in front of an inner packet of `inner` bytes. */
static void judge_outer(const unsigned char *at, size_t room, size_t inner, int inner_family)
{
	unsigned int protocol = inner_family == 4 ? 4 : 41;

	if (room == 20) {
		NATIVE_CHECK(at[0] == 0x45 && at[8] == 64 && at[9] == protocol, "outer IPv4 header");
		NATIVE_CHECK(judge16(at + 2) == inner + 20, "outer length %u", judge16(at + 2));
		NATIVE_CHECK(judge_sum(at, 20) == 0xffff, "outer checksum");
		NATIVE_CHECK(at[1] == (inner_family == 4 ? at[21] : (judge16(at + 20) >> 4 & 0xff)), "outer DSCP");
		NATIVE_CHECK((at[6] & 0xbf) == 0 && at[7] == 0, "outer flags");
	} else {
		NATIVE_CHECK(at[0] >> 4 == 6 && at[7] == 64 && at[6] == protocol, "outer IPv6 header");
		NATIVE_CHECK(judge16(at + 4) == inner, "outer length %u", judge16(at + 4));
		NATIVE_CHECK((at[1] & 15) | at[2] | at[3], "no flow label");
	}
}

/* What was sent is the frame with an outer header and one TTL less. */
static void judge_sent(const unsigned char *before, size_t size)
{
	const unsigned char *after = native_data();
	size_t room = native_size() - size, length;
	int family;
	size_t at = judge_link(before, size, &family);
	unsigned int was, is;

	NATIVE_CHECK(room == 20 || room == 40, "%zu bytes in front", room);
	NATIVE_CHECK(memcmp(after + 12, before + 12, at - 14) == 0, "tags");
	NATIVE_CHECK(judge16(after + at - 2) == (room == 20 ? 0x0800 : 0x86dd), "ethertype");
	NATIVE_CHECK(memcmp(after, "\2\0\0\0\0", 5) == 0 && memcmp(after + 6, "\2\0\0\0\0", 5) == 0, "MAC addresses");
	length = judge_length(before + at);
	NATIVE_CHECK(before[at] >> 4 == family, "version");
	NATIVE_CHECK(length <= size - at + native.beyond, "%zu bytes claimed", length);
	judge_outer(after + at, room, length, family);
	after += at + room;
	before += at;
	if (family == 4) {
		/* A later fragment's header may go on behind the first segment.  0 and 0xffff are one number. */
		if ((before[0] & 15) * 4u <= size - at) {
			was = judge_sum(before, (before[0] & 15) * 4u);
			is = judge_sum(after, (before[0] & 15) * 4u);
			NATIVE_CHECK(was % 0xffff == is % 0xffff, "inner checksum");
		}
		NATIVE_CHECK(before[8] > 1 && after[8] == before[8] - 1, "TTL");
		NATIVE_CHECK(memcmp(before, after, 8) == 0 && before[9] == after[9], "inner header");
		NATIVE_CHECK(memcmp(before + 12, after + 12, size - at - 12) == 0, "inner packet");
	} else {
		NATIVE_CHECK(before[7] > 1 && after[7] == before[7] - 1, "hop limit");
		NATIVE_CHECK(memcmp(before, after, 7) == 0, "inner header");
		NATIVE_CHECK(memcmp(before + 8, after + 8, size - at - 8) == 0, "inner packet");
	}
}

/* What shunt says itself goes back to where the frame came from, from the address that it was for, whole and right. */
static void judge_answer(const unsigned char *before, size_t size)
{
	const unsigned char *after = native_data();
	int family, back;
	size_t at = judge_link(before, size, &family);

	NATIVE_CHECK(judge_link(after, native_size(), &back) == at && back == family, "another link header");
	NATIVE_CHECK(memcmp(after, before + 6, 6) == 0 && memcmp(after + 6, before, 6) == 0, "MAC addresses");
	after += at;
	before += at;
	NATIVE_CHECK(judge_length(after) <= native_size() - at + native.beyond, "%zu bytes claimed",
		     judge_length(after));
	if (family == 4) {
		NATIVE_CHECK(after[8] == 64, "TTL %u", after[8]);
		NATIVE_CHECK(memcmp(after + 12, before + 16, 4) == 0 && memcmp(after + 16, before + 12, 4) == 0,
			     "addresses");
	} else {
		NATIVE_CHECK(after[7] == 64, "hop limit %u", after[7]);
		NATIVE_CHECK(memcmp(after + 8, before + 24, 16) == 0 && memcmp(after + 24, before + 8, 16) == 0,
			     "addresses");
	}
}

static void judge(const unsigned char *frame, size_t size, int verdict)
{
	int reason = judge_reason(reason_values.packets, SHUNT_REASONS_ROOM);
	bool same = native_size() == size && memcmp(native_data(), frame, size) == 0;

	NATIVE_CHECK(reason >= 0, "not exactly one reason");
	NATIVE_CHECK(for_a_service(frame, size) || verdict == XDP_PASS, "%s: not for a service",
		     judge_reasons[reason].name);
	switch (judge_reasons[reason].class) {
	case JUDGE_PASS:
		NATIVE_CHECK(verdict == XDP_PASS && same, "%s", judge_reasons[reason].name);
		break;
	case JUDGE_DROP:
		NATIVE_CHECK(verdict == XDP_DROP, "%s", judge_reasons[reason].name);
		NATIVE_CHECK(same || reason == SHUNT_DROP_HEADROOM, "%s", judge_reasons[reason].name);
		break;
	case JUDGE_ANSWER:
		NATIVE_CHECK(verdict == XDP_TX, "%d", verdict);
		judge_answer(frame, size);
		break;
	case JUDGE_FORWARD:
		NATIVE_CHECK(verdict == (reason == SHUNT_FORWARD_TX ? XDP_TX : XDP_REDIRECT), "%d", verdict);
		NATIVE_CHECK(native.redirected == (reason == SHUNT_FORWARD_TX ? 0 : 9), "to %u", native.redirected);
		judge_sent(frame, size);
		break;
	default:
		NATIVE_CHECK(0, "%s", judge_reasons[reason].name);
	}
}

/* One input.  Returns the verdict. */
static int try_frame(const uint8_t *data, size_t size)
{
	struct shunt_config loaded = {.address_buckets = SHUNT_ADDRESS_BUCKETS(ADDRESSES),
				      .service_buckets = SHUNT_SERVICE_BUCKETS(SERVICES),
				      .frags = data[0] & 1};
	int verdict;

	native_configure(&loaded);
	native.no_adjust = data[0] & 2;
	native.beyond = loaded.frags ? judge16(data + 1) : 0;
	native_frame(data + 3, size - 3, INGRESS);
	verdict = shunt(&native.context);
	judge(data + 3, size - 3, verdict);
	return verdict;
}

/* A bare ACK to 192.0.2.10 port 80: had the maps been filled wrongly, no input would get beyond them. */
static const uint8_t good_frame[] = "\0\0\0"
				    "\2\0\0\0\0\1\2\0\0\0\14\1\x08\0"
				    "\x45\0\0\x28\0\1\x40\0\x40\6\0\0\xc6\x33\x64\7\xc0\0\2\12"
				    "\x9c\x40\0\x50\0\0\0\1\0\0\0\1\x50\x10\xff\xff\0\0\0";

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	build_snapshot();
	build_backends();
	build_table();
	snapshot_inner[0] = native_add(NULL, NATIVE_ARRAY, 1, sizeof(snapshot_value), snapshot_value)->map;
	table_inner[0] = native_add(NULL, NATIVE_ARRAY, 1, sizeof(table_value), table_value)->map;
	native_add(&snapshot, NATIVE_OUTER, 1, 0, snapshot_inner);
	native_add(&tables_s, NATIVE_OUTER, 2, 0, table_inner);
	native_add(&tables_m, NATIVE_OUTER, 1, 0, nothing);
	native_add(&tables_l, NATIVE_OUTER, 1, 0, nothing);
	native_add(&backends, NATIVE_ARRAY, BACKENDS, sizeof(backend_values[0]), backend_values);
	native_add(&nexthops, NATIVE_ARRAY, 3, sizeof(nexthop_values[0]), nexthop_values);
	native_add(&ifaces, NATIVE_ARRAY, 3, sizeof(iface_values[0]), iface_values);
	native_add(&reasons, NATIVE_ARRAY, 1, sizeof(reason_values), &reason_values);
	native_add(&service_stats, NATIVE_ARRAY, SERVICES, sizeof(service_values[0]), service_values);
	native_add(&backend_stats, NATIVE_ARRAY, BACKENDS, sizeof(backend_stat_values[0]), backend_stat_values);
	native_add(&ranges_s, NATIVE_OUTER, 1, 0, nothing);
	native_add(&ranges_m, NATIVE_OUTER, 1, 0, nothing);
	native_add(&ranges_l, NATIVE_OUTER, 1, 0, nothing);
	native_add(&flows, NATIVE_ARRAY, 0, 0, NULL);
	native_add(&pool_stats, NATIVE_ARRAY, 0, 0, NULL);
	native_add(&backend_path, NATIVE_ARRAY, 0, 0, NULL);
	native_add(&endpoints, NATIVE_ARRAY, 0, 0, NULL);
	native_add(&outer_sources, NATIVE_PREFIXES, 0, 0, NULL);
	native_add(&error_clock, NATIVE_ARRAY, 1, sizeof(clock_value), &clock_value);
	native_add(&scratch_transit, NATIVE_ARRAY, 1, sizeof(transit_value), &transit_value);
	native_add(&scratch_answer, NATIVE_ARRAY, 1, sizeof(answer_value), &answer_value);
	native_add(&fragments, NATIVE_ARRAY, SHUNT_FRAGMENT_BUCKETS, sizeof(fragment_values[0]), fragment_values);
	NATIVE_CHECK(try_frame(good_frame, sizeof(good_frame)) == XDP_TX, "the good frame is not sent");
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
