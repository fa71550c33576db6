/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl flow show: whether a connection is recorded, and what of its slot is under way. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <shunt/flowhash.h>

#include "ctl.h"
#include "duration.h"
#include "flow.h"
#include "snapshot.h"

#define T0_MS 100

struct show {
	struct ctl_words words;
	uint8_t protocol;
	union shunt_address source, destination;
	unsigned int source_port, destination_port;
	struct flow_names names;
	/* found */
	struct snapshot_service service;
	uint64_t hash; /* of the 5-tuple */
	uint32_t slot;
	struct published published;
	bool recorded;
	struct flowtable_entry entry;
};

/* ---- finding it ---- */

static uint64_t hash_of(const struct show *show, const struct shunt_hash_key *key, uint32_t mode)
{
	uint16_t raw[2] = {htons((uint16_t)show->source_port), htons((uint16_t)show->destination_port)};
	uint32_t ports = (uint32_t)raw[0] | (uint32_t)raw[1] << 16;

	return shunt_flow_hash(key, mode, !addr_is_v4(&show->destination), &show->source, &show->destination, ports,
			       show->protocol);
}

/* The exact port before the whole address, as packets find it. */
static bool find_service(struct show *show, const struct snapshot_content *content)
{
	bool found = false;

	for (size_t i = 0; i < content->n_services; i++) {
		const struct snapshot_service *service = &content->services[i];

		if (service->protocol != show->protocol ||
		    !addr_equal(&content->addresses[service->address].address, &show->destination) ||
		    (service->port && service->port != show->destination_port))
			continue;
		if (!found || service->port)
			show->service = *service;
		found = true;
	}
	return found;
}

static int read_snapshot(const struct maps *maps, struct snapshot_content *out)
{
	const struct snapshot_capacity capacity = {.addresses = maps->meta.addresses, .services = maps->meta.services};
	void *value = malloc(maps_inner_size(maps, MAPS_SNAPSHOT));
	int err = value ? maps_inner_read(maps, MAPS_SNAPSHOT, 0, value) : -ENOMEM;

	if (!err)
		err = snapshot_read(value, &capacity, out);
	free(value);
	return err;
}

static int cannot_read(int err)
{
	return ctl_fail(CTL_INVALID, "Failed", "cannot read the maps: %s", strerror(-err));
}

/* Service, hash and, once its table is known, slot. */
static int find(struct show *show, const struct flowtable *table)
{
	struct snapshot_content content = {};
	int err = read_snapshot(table->maps, &content);
	uint64_t slot_hash = 0;
	bool found;

	if (err && err != -ENOENT)
		return cannot_read(err);
	found = !err && find_service(show, &content);
	if (found) {
		show->hash = hash_of(show, &content.key, SHUNT_HASH_5TUPLE);
		slot_hash = hash_of(show, &content.key, show->service.hash_mode);
		err = flowtable_pool(table, (enum shunt_table_class)show->service.table_class, show->service.pool,
				     &show->published);
	}
	snapshot_free(&content);
	if (!found)
		return ctl_fail(CTL_INVALID, "NotFound", "%s %s is no service", show->words.value[0],
				show->words.value[2]);
	if (err)
		return cannot_read(err);
	show->slot = shunt_hash_slot(slot_hash, show->published.transit.slots);
	show->recorded = flowtable_find(table, &show->published, show->slot, show->hash, show->protocol == IPPROTO_UDP,
					&show->entry);
	return CTL_OK;
}

/* ---- telling ---- */

struct slot {
	uint32_t owner, base, range, own;
	bool tracked, learning, waits;
	uint64_t left_rest_ms; /* only where owner and base differ */
	uint64_t settle_ms;
};

/* The pool's own settle, where the ages of entries allow for it. */
static uint64_t settle_of(const struct show *show, const json_t *pool)
{
	const char *text = json_string_value(json_object_get(pool, "settle"));
	uint64_t most = transit_settle_ms(show->published.header.limits), own;

	return text && !duration_parse(text, &own) && own < most ? own : most;
}

static struct slot slot_of(const struct show *show)
{
	const struct transit *transit = &show->published.transit;
	const json_t *pool = ctl_row_with(show->names.pools, "index", show->service.pool);
	struct timespec now;
	struct slot slot = {
		.owner = transit->owner[show->slot] & SHUNT_BACKEND_NONE,
		.base = transit->base[show->slot] & SHUNT_BACKEND_NONE,
		.range = transit->range[show->slot],
		.own = transit->own ? transit->own + show->slot : 0,
		.tracked = transit->owner[show->slot] & SHUNT_SLOT_TRACKED,
		.waits = json_is_true(json_object_get(pool, "settling_waits")),
	};

	if (!slot.tracked || slot.owner == slot.base)
		return slot;
	clock_gettime(CLOCK_MONOTONIC, &now);
	slot.learning = transit->base[show->slot] & SHUNT_SLOT_LEARN;
	slot.left_rest_ms =
		T0_MS * (uint64_t)((uint32_t)(((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000) / T0_MS) -
				   transit->t0[show->slot]);
	slot.settle_ms = settle_of(show, pool);
	return slot;
}

static json_t *settles_in(const struct slot *slot)
{
	if (!slot->tracked || slot->owner == slot->base || slot->owner == SHUNT_BACKEND_NONE)
		return json_null();
	return json_integer(slot->left_rest_ms < slot->settle_ms ? (json_int_t)(slot->settle_ms - slot->left_rest_ms)
								 : 0);
}

static json_t *slot_json(const struct show *show, const struct slot *slot)
{
	bool apart = slot->tracked && slot->owner != slot->base;
	json_t *buckets = json_array();

	if (slot->range && slot->own)
		json_array_append_new(buckets, json_integer(slot->own / SHUNT_FLOW_WAYS));
	if (slot->range) {
		json_array_append_new(buckets, json_integer(shunt_flow_first(show->hash, slot->range)));
		json_array_append_new(buckets, json_integer(shunt_flow_second(show->hash, slot->range)));
	}
	return json_pack("{s:I, s:o, s:o, s:b, s:b, s:o, s:o, s:b, s:o}", "slot", (json_int_t)show->slot, "owner",
			 flow_backend(&show->names, slot->owner), "base",
			 slot->tracked ? flow_backend(&show->names, slot->base) : json_null(), "tracked",
			 (int)slot->tracked, "learning", (int)slot->learning, "left_rest_ms",
			 apart ? json_integer((json_int_t)slot->left_rest_ms) : json_null(), "settles_in_ms",
			 settles_in(slot), "settling_waits", (int)(apart && slot->waits), "buckets", buckets);
}

/* When it stops to matter that the connection is recorded, or why it is not. */
static const char *sentence(const struct show *show, const struct slot *slot)
{
	if (!slot->tracked)
		return "The slot is at rest: nothing of it is recorded, and each of its connections goes to the owner.";
	if (!slot->range)
		return "No room was left to record connections of this slot: those without an entry go to base.";
	if (!show->recorded)
		return slot->owner == slot->base
			       ? "It is not recorded: it goes to the owner. The slot comes to rest when a scan finds "
				 "no "
				 "entry that names another backend."
			       : "It is not recorded: a new connection goes to the owner and is, the next packet of an "
				 "older one goes to base and is.";
	if (show->entry.stale)
		return "Its backend is gone: the entry counts for nothing, and the next scan deletes it.";
	if (slot->owner != slot->base)
		return "The entry holds it until the slot settles and after that as long as its backend is not the "
		       "owner, it is used, and the backend is there.";
	if (SHUNT_FLOW_BACKEND(show->entry.word) != slot->owner)
		return "The slot has settled, and stays tracked until this connection is closed, silent for as long "
		       "as settle, or its backend is gone.";
	return "The slot has settled, and comes to rest when a scan finds no entry that names another backend; this "
	       "one names the owner.";
}

static json_t *show_json(const struct show *show)
{
	const json_t *service = ctl_row_with(show->names.services, "index", show->service.counter);
	const char *name = json_string_value(json_object_get(service, "name"));
	const struct slot slot = slot_of(show);
	char source[ADDR_TEXT_MAX], destination[ADDR_TEXT_MAX];
	json_t *out = json_pack(
		"{s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I}", "protocol", show->protocol == IPPROTO_TCP ? "tcp" : "udp",
		"source", addr_port_format(&show->source, show->source_port, source), "destination",
		addr_port_format(&show->destination, show->destination_port, destination), "service",
		name ? json_string(name) : json_sprintf("%u", show->service.counter), "pool",
		flow_pool(&show->names, show->service.pool), "epoch", (json_int_t)show->published.header.epoch, "phase",
		(json_int_t)show->published.header.phase, "fingerprint",
		(json_int_t)shunt_flow_fp(show->hash, show->protocol == IPPROTO_UDP));

	json_object_update_new(out, slot_json(show, &slot));
	json_object_set_new(out, "recorded", json_boolean(show->recorded));
	json_object_set_new(out, "entry", show->recorded ? flow_row(&show->names, &show->entry) : json_null());
	json_object_set_new(out, "meaning", json_string(sentence(show, &slot)));
	return out;
}

/* ---- for people ---- */

static char *left_rest_text(const json_t *row)
{
	return flow_seconds(json_object_get(row, "left_rest_ms"));
}

static char *settles_text(const json_t *row)
{
	if (json_is_true(json_object_get(row, "settling_waits")))
		return strdup("waits: insertions were refused lately");
	return flow_seconds(json_object_get(row, "settles_in_ms"));
}

static void print_show(const json_t *show)
{
	static const struct ctl_column of_slot[] = {
		{"service", "service", CTL_TEXT, NULL},
		{"pool", "pool", CTL_TEXT, NULL},
		{"slot", "slot", CTL_NUMBER, NULL},
		{"owner", "owner", CTL_TEXT, NULL},
		{"base", "base", CTL_TEXT, NULL},
		{"tracked", "tracked", CTL_TEXT, NULL},
		{"learning", "learning", CTL_TEXT, NULL},
		{"left rest ago", NULL, CTL_TEXT, left_rest_text},
		{"settles in", NULL, CTL_TEXT, settles_text},
		{"recorded", "recorded", CTL_TEXT, NULL},
	};
	static const struct ctl_column of_entry[] = {
		{"  bucket", "bucket", CTL_NUMBER, NULL},      {"  place", "place", CTL_NUMBER, NULL},
		{"  state", "state", CTL_TEXT, NULL},	       {"  idle", NULL, CTL_TEXT, flow_idle},
		{"  backend     ", "backend", CTL_TEXT, NULL},
	};

	ctl_print_object(show, of_slot, sizeof(of_slot) / sizeof(of_slot[0]));
	if (json_is_true(json_object_get(show, "recorded")))
		ctl_print_object(json_object_get(show, "entry"), of_entry, sizeof(of_entry) / sizeof(of_entry[0]));
	printf("\n%s\n", json_string_value(json_object_get(show, "meaning")));
}

static int read_show(struct show *show, struct report *report)
{
	struct flowtable table;
	struct maps maps;
	json_t *out;
	int err, code = ctl_open_maps(&maps, report);

	if (code)
		return code;
	err = flowtable_open(&maps, &table);
	code = err ? cannot_read(err) : find(show, &table);
	if (!err)
		flowtable_close(&table);
	maps_close(&maps);
	if (code)
		return code;
	out = show_json(show);
	transit_free(&show->published.transit);
	if (ctl_options.json)
		return ctl_print_json(out);
	print_show(out);
	json_decref(out);
	return CTL_OK;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	return ctl_word(state->input, key, arg, state);
}

static int parse_flow(struct show *show)
{
	const char *const *value = show->words.value;
	int code = flow_protocol(value[0], false, &show->protocol);

	if (!code)
		code = flow_endpoint(show->protocol, value[1], &show->source, &show->source_port);
	if (!code)
		code = flow_endpoint(show->protocol, value[2], &show->destination, &show->destination_port);
	return code ? code : flow_families(&show->source, &show->destination, value);
}

int flow_show(int argc, char **argv)
{
	static const char *const names[] = {"PROTOCOL", "SOURCE", "DESTINATION", NULL};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "tcp|udp SOURCE DESTINATION",
		.doc = "Says whether a connection is recorded, on which backend, and when its slot comes to rest. "
		       "Needs root, but no daemon.",
		.children = children,
	};
	struct show show = {.words = {.names = names, .required = 3}};
	struct report report = {};
	int code = ctl_parse(&argp, argc, argv, NULL, &show.words);

	if (!code)
		code = parse_flow(&show);
	if (code)
		return code;
	show.names.services = ctl_rows_if_running("ServiceList", "services");
	show.names.pools = ctl_rows_if_running("PoolList", "pools");
	show.names.backends = ctl_rows_if_running("BackendList", "backends");
	code = read_show(&show, &report);
	json_decref(show.names.services);
	json_decref(show.names.pools);
	json_decref(show.names.backends);
	report_free(&report);
	return code;
}
