/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flow hash as a random function: avalanche, uniformity of slots, collisions. */
#include <math.h>

#include "flowhash_fixture.h"

/* ---- avalanche ---- */

#define TRIALS 4096

/* Flips input bit `bit` of a flow: the source's, then the destination's, the ports', the protocol's. */
static void flip(struct flow *flow, int bit)
{
	int bits = flow->ipv6 ? 128 : 32, first = flow->ipv6 ? 0 : 12;

	if (bit < bits)
		flow->source.byte[first + bit / 8] ^= (uint8_t)(1 << bit % 8);
	else if (bit < 2 * bits)
		flow->destination.byte[first + (bit - bits) / 8] ^= (uint8_t)(1 << bit % 8);
	else if (bit < 2 * bits + 32)
		flow->ports ^= 1u << (bit - 2 * bits);
	else
		flow->protocol ^= (uint8_t)(1 << (bit - 2 * bits - 32));
}

/*
 * How often an input bit flips each output bit, over random keys and flows.  The standard deviation of a share of 4,096
 * is 0.0078; the bound is 6.4 of them, which one cell of the 18,944 for IPv6 passes once in 300,000 tables.
 */
static void check_avalanche(int ipv6)
{
	int inputs = (ipv6 ? 256 : 64) + 32 + 8;
	uint64_t seed = 2 + (uint64_t)ipv6;

	for (int bit = 0; bit < inputs; bit++) {
		unsigned int flips[64] = {};

		for (int trial = 0; trial < TRIALS; trial++) {
			struct shunt_hash_key key;
			struct flow flow = random_flow(ipv6, &seed);
			uint64_t change;

			for (int i = 0; i < SHUNT_HASH_WORDS; i++)
				key.word[i] = (uint32_t)random64(&seed);
			key.final = random64(&seed);
			change = flow_hash(&key, &flow);
			flip(&flow, bit);
			change ^= flow_hash(&key, &flow);
			for (int out = 0; out < 64; out++)
				flips[out] += change >> out & 1;
		}
		for (int out = 0; out < 64; out++)
			if (fabs((double)flips[out] / TRIALS - 0.5) > 0.05)
				fail_msg("IPv%d: bit %d flips output bit %d in %u of %d", ipv6 ? 6 : 4, bit, out,
					 flips[out], TRIALS);
	}
}

static void test_avalanche(void **state)
{
	(void)state;
	check_avalanche(0);
	check_avalanche(1);
}

/* ---- uniformity over inputs as they come ---- */

#define STRUCTURED 65536

typedef struct flow structured_fn(uint32_t i);

static struct flow base4(void)
{
	return (struct flow){.source = address4(0x0a000001),
			     .destination = address4(0xc000020a),
			     .ports = ports_word(40000, 80),
			     .protocol = 6};
}

static struct flow base6(void)
{
	return (struct flow){.source = address6(0x20010db800010000, 1),
			     .destination = address6(0x20010db800000000, 0x10),
			     .ports = ports_word(40000, 443),
			     .protocol = 6,
			     .ipv6 = 1};
}

static struct flow one_client_all_ports(uint32_t i)
{
	struct flow flow = base4();

	flow.ports = ports_word(i, 80);
	return flow;
}

static struct flow addresses_in_a_row(uint32_t i)
{
	struct flow flow = base4();

	flow.source = address4(0x0a000000 + i);
	return flow;
}

static struct flow one_slash24(uint32_t i)
{
	struct flow flow = base4();

	flow.source = address4(0xc6336400 + (i & 0xff));
	flow.ports = ports_word(32768 + (i >> 8), 80);
	return flow;
}

static struct flow addresses_in_steps(uint32_t i)
{
	struct flow flow = base4();

	flow.source = address4(i << 16 | 1);
	return flow;
}

static struct flow source_only(uint32_t i)
{
	struct flow flow = addresses_in_a_row(i);

	flow.mode = SHUNT_HASH_SOURCE;
	return flow;
}

static struct flow source_and_port(uint32_t i)
{
	struct flow flow = one_slash24(i);

	flow.mode = SHUNT_HASH_SOURCE_PORT;
	return flow;
}

static struct flow hosts_of_one_prefix6(uint32_t i)
{
	struct flow flow = base6();

	flow.source = address6(0x20010db800010000, i);
	return flow;
}

static struct flow prefixes6(uint32_t i)
{
	struct flow flow = base6();

	flow.source = address6(0x20010db800000000 + i, 1);
	flow.mode = SHUNT_HASH_SOURCE;
	return flow;
}

static struct flow ports6(uint32_t i)
{
	struct flow flow = base6();

	flow.ports = ports_word(i, 443);
	return flow;
}

static const struct {
	const char *name;
	structured_fn *make;
} structured[] = {
	{"one client, all ports", one_client_all_ports},
	{"addresses in a row", addresses_in_a_row},
	{"one /24", one_slash24},
	{"addresses in steps of 65,536", addresses_in_steps},
	{"by source, addresses in a row", source_only},
	{"by source and port, one /24", source_and_port},
	{"hosts of one IPv6 prefix", hosts_of_one_prefix6},
	{"by source, IPv6 prefixes in a row", prefixes6},
	{"IPv6, one client, all ports", ports6},
};

static double chi_square(const struct shunt_hash_key *key, structured_fn *make, uint32_t slots)
{
	double expected = (double)STRUCTURED / slots, sum = 0;
	uint32_t *hits = calloc(slots, sizeof(*hits));

	assert_non_null(hits);
	for (uint32_t i = 0; i < STRUCTURED; i++) {
		struct flow flow = make(i);
		uint32_t slot = shunt_hash_slot(flow_hash(key, &flow), slots);

		assert_true(slot < slots);
		hits[slot]++;
	}
	for (uint32_t i = 0; i < slots; i++)
		sum += (hits[i] - expected) * (hits[i] - expected) / expected;
	free(hits);
	return sum;
}

/*
 * Chi-square of 65,536 flows over `slots`, for 32 keys: each below its mean by 6 standard deviations, and the mean of
 * all within 5 of its own.
 */
static void check_uniform(size_t which, uint32_t slots)
{
	double freedom = slots - 1, deviation = sqrt(2 * freedom), total = 0;
	uint64_t seed = 3 + which;

	for (int i = 0; i < 32; i++) {
		struct shunt_hash_key key = random_key(&seed);
		double value = chi_square(&key, structured[which].make, slots);

		if (value > freedom + 6 * deviation)
			fail_msg("%s over %u slots: chi-square %.0f", structured[which].name, slots, value);
		total += value;
	}
	if (fabs(total / 32 - freedom) > 5 * deviation / sqrt(32))
		fail_msg("%s over %u slots: mean chi-square %.0f", structured[which].name, slots, total / 32);
}

static void test_slots_are_uniform(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(structured) / sizeof(structured[0]); i++) {
		check_uniform(i, 251);
		check_uniform(i, 4099);
	}
}

/* ---- collisions ---- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * 2^17 flows under each of 16 keys: the high halves, which make the slot, collide as 32 random bits do (2 pairs a key,
 * 32 in all, Poisson: 10 to 60 is 4 deviations), the whole never.
 */
static void test_collisions_are_as_rare_as_they_should_be(void **state)
{
	size_t n = 1 << 17, pairs = 0;
	uint64_t seed = 4, *hashes = calloc(n, sizeof(*hashes));

	(void)state;
	assert_non_null(hashes);
	for (int round = 0; round < 16; round++) {
		struct shunt_hash_key key = random_key(&seed);

		for (size_t i = 0; i < n; i++) {
			struct flow flow = structured[1 + round % 3].make((uint32_t)i & 0xffff);

			flow.destination = address4(0xc0000200 + (uint32_t)(i >> 16));
			hashes[i] = flow_hash(&key, &flow);
		}
		qsort(hashes, n, sizeof(*hashes), compare_u64);
		for (size_t i = 1; i < n; i++) {
			assert_int_not_equal(hashes[i - 1], hashes[i]);
			pairs += hashes[i - 1] >> 32 == hashes[i] >> 32;
		}
	}
	free(hashes);
	assert_in_range(pairs, 10, 60);
}

/*
 * Pairs that differ in ways which weak hashes do not see, under 20,000 keys: the same one of 251 slots as often as
 * chance says (80 times, deviation 9), and never the same hash: no collision holds for every key.
 */
static void check_pair(const struct flow *a, const struct flow *b, const char *name)
{
	unsigned int same = 0;
	uint64_t seed = 5;

	for (int i = 0; i < 20000; i++) {
		struct shunt_hash_key key = random_key(&seed);
		uint64_t x = flow_hash(&key, a), y = flow_hash(&key, b);

		assert_int_not_equal(x, y);
		same += shunt_hash_slot(x, 251) == shunt_hash_slot(y, 251);
	}
	if (same < 30 || same > 130)
		fail_msg("%s: the same slot under %u of 20,000 keys", name, same);
}

static void test_no_pair_collides_for_every_key(void **state)
{
	struct flow a = base4(), b = base4(), c = base6(), d = base6();

	(void)state;
	b.source = address4(0x0a000001 ^ 0x80000000);
	check_pair(&a, &b, "the highest bit of the source");
	b = a;
	b.ports ^= 0x80000000;
	check_pair(&a, &b, "the highest bit of the ports");
	b = a;
	b.source = a.destination;
	b.destination = a.source;
	check_pair(&a, &b, "addresses exchanged");
	b = a;
	b.protocol = 17;
	check_pair(&a, &b, "TCP and UDP");
	d.source = address6(1, 0x20010db800010000);
	check_pair(&c, &d, "halves of an address exchanged");
	d = c;
	d.source.word[0] = (SHUNT_FORCE __be32)(d.source.word[0] + 1);
	d.source.word[1] = (SHUNT_FORCE __be32)(d.source.word[1] - 1);
	check_pair(&c, &d, "one word more, its partner less");
	a.mode = SHUNT_HASH_SOURCE;
	b = a;
	b.mode = SHUNT_HASH_SOURCE_PORT;
	b.ports = 0;
	check_pair(&a, &b, "two modes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_avalanche),
		cmocka_unit_test(test_slots_are_uniform),
		cmocka_unit_test(test_collisions_are_as_rare_as_they_should_be),
		cmocka_unit_test(test_no_pair_collides_for_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
