/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flow hash against its golden vectors, in C and through the kernel's JIT. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../bpf/flowhash.h"
#include "flowhash_fixture.h"

#define VECTORS 10000

struct vector {
	uint8_t key[16];
	struct flow flow;
	uint64_t hash;
	uint32_t slots, slot;
};

static int parse_address(const char *text, int ipv6, union shunt_address *out)
{
	*out = address4(0);
	return inet_pton(ipv6 ? AF_INET6 : AF_INET, text, ipv6 ? out->byte : out->byte + 12) == 1;
}

static void parse_vector(const char *line, struct vector *out)
{
	char key[33], source[64], destination[64];
	unsigned int mode, sport, dport, protocol;
	unsigned long long hash;

	memset(out, 0, sizeof(*out));
	assert_int_equal(sscanf(line, "%32s %u %63s %u %63s %u %u %llx %u %u", key, &mode, source, &sport, destination,
				&dport, &protocol, &hash, &out->slots, &out->slot),
			 10);
	for (int i = 0; i < 16; i++)
		assert_int_equal(sscanf(key + 2 * i, "%2hhx", &out->key[i]), 1);
	out->flow.ipv6 = strchr(source, ':') != NULL;
	assert_true(parse_address(source, out->flow.ipv6, &out->flow.source));
	assert_true(parse_address(destination, out->flow.ipv6, &out->flow.destination));
	out->flow.ports = ports_word(sport, dport);
	out->flow.mode = mode;
	out->flow.protocol = (uint8_t)protocol;
	out->hash = hash;
}

static FILE *open_built(const char *name, char path[static 512])
{
	const char *build = getenv("SHUNT_TEST_BUILD");
	FILE *file;

	snprintf(path, 512, "%s/%s", build ? build : "build/tests", name);
	file = fopen(path, "r");
	if (!file)
		fail_msg("%s is missing: run `make test-unit`", path);
	return file;
}

/* All vectors, malloc'd. */
static struct vector *read_vectors(void)
{
	struct vector *vectors = calloc(VECTORS, sizeof(*vectors));
	char path[512], line[512];
	FILE *file = open_built("golden/flowhash.tsv", path);
	size_t count = 0;

	assert_non_null(vectors);
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '#')
			continue;
		assert_true(count < VECTORS);
		parse_vector(line, &vectors[count++]);
	}
	fclose(file);
	assert_int_equal(count, VECTORS);
	return vectors;
}

static void test_c_agrees_with_the_vectors(void **state)
{
	struct vector *vectors = read_vectors();
	struct shunt_hash_key key;

	(void)state;
	for (size_t i = 0; i < VECTORS; i++) {
		hashkey_expand(vectors[i].key, &key);
		assert_int_equal(flow_hash(&key, &vectors[i].flow), vectors[i].hash);
		assert_int_equal(shunt_hash_slot(vectors[i].hash, vectors[i].slots), vectors[i].slot);
	}
	free(vectors);
}

static void run_in_bpf(int program, const struct vector *vector, struct flowhash_case *one)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = one, .data_size_in = sizeof(*one), .data_out = one,
		    .data_size_out = sizeof(*one));

	memset(one, 0, sizeof(*one));
	hashkey_expand(vector->key, &one->key);
	one->source = vector->flow.source;
	one->destination = vector->flow.destination;
	one->mode = vector->flow.mode;
	one->ipv6 = (uint32_t)vector->flow.ipv6;
	one->ports = vector->flow.ports;
	one->protocol = vector->flow.protocol;
	one->slots = vector->slots;
	assert_int_equal(bpf_prog_test_run_opts(program, &options), 0);
	assert_int_equal(options.retval, XDP_PASS);
}

static void test_bpf_agrees_with_the_vectors(void **state)
{
	struct vector *vectors = read_vectors();
	struct flowhash_case one;
	struct bpf_object *object;
	char path[512];
	int program;

	(void)state;
	fclose(open_built("bpf/flowhash.bpf.o", path));
	object = bpf_object__open(path);
	assert_non_null(object);
	assert_int_equal(bpf_object__load(object), 0);
	program = bpf_program__fd(bpf_object__find_program_by_name(object, "flowhash"));
	for (size_t i = 0; i < VECTORS; i++) {
		run_in_bpf(program, &vectors[i], &one);
		assert_int_equal(one.hash, vectors[i].hash);
		assert_int_equal(one.slot, vectors[i].slot);
	}
	bpf_object__close(object);
	free(vectors);
}

/* ---- what a mode leaves out does not count ---- */

static void test_modes_leave_out_what_they_say(void **state)
{
	uint64_t seed = 1;
	struct shunt_hash_key key = random_key(&seed);

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct flow flow = random_flow(i & 1, &seed), other = random_flow(i & 1, &seed);

		other.source = flow.source;
		flow.mode = other.mode = SHUNT_HASH_SOURCE;
		assert_int_equal(flow_hash(&key, &flow), flow_hash(&key, &other));
		flow.mode = other.mode = SHUNT_HASH_SOURCE_PORT;
		assert_int_not_equal(flow_hash(&key, &flow), flow_hash(&key, &other));
		other.ports = (flow.ports & 0xffff) | (other.ports & 0xffff0000);
		assert_int_equal(flow_hash(&key, &flow), flow_hash(&key, &other));
		flow.mode = other.mode = SHUNT_HASH_5TUPLE;
		assert_int_not_equal(flow_hash(&key, &flow), flow_hash(&key, &other));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c_agrees_with_the_vectors),
		cmocka_unit_test(test_bpf_agrees_with_the_vectors),
		cmocka_unit_test(test_modes_leave_out_what_they_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
