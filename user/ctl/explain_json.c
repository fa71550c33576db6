/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl explain: the decision as JSON, the names filled in where the daemon knows them. */
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <shunt/flow.h>

#include "cmd_explain.h"
#include "ctl.h"
#include "flowtable.h"
#include "model.h"

/* Indexed by the enums that <shunt/trace.h> and <shunt/types.h> name. */
static const char *const actions[] = {"aborted", "drop", "pass", "tx", "redirect"};
static const char *const parts[] = {"whole", "first fragment", "later fragment"};
static const char *const kinds[] = {"SYN", "segment", "FIN or RST", "datagram", "quoted by an ICMP error"};
static const char *const answers[] = {"too big", "time exceeded", "refused"};
static const char *const encapsulations[] = {"none", "ipip", "ipip", "gue", "gue", "l2"};

#define NAME_OF(list, index) ((index) < sizeof(list) / sizeof((list)[0]) ? (list)[index] : "unknown")

static json_t *hex64(uint64_t value)
{
	char text[19];

	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)value);
	return json_string(text);
}

static json_t *mac(const uint8_t *at)
{
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", at[0], at[1], at[2], at[3], at[4], at[5]);
	return json_string(text);
}

static json_t *name_of(const json_t *rows, const char *key, json_int_t value)
{
	const char *name = json_string_value(json_object_get(ctl_row_with(rows, key, value), "name"));

	return name ? json_string(name) : json_null();
}

/* {"id", "name"}, or null for SHUNT_BACKEND_NONE. */
static json_t *backend_named(const struct explain_names *names, uint32_t id)
{
	const json_t *row = ctl_row_with(names->backends, "id", id);
	const char *pool = json_string_value(json_object_get(row, "pool"));
	const char *name = json_string_value(json_object_get(row, "name"));

	if (id == SHUNT_BACKEND_NONE)
		return json_null();
	return json_pack("{s:I, s:o}", "id", (json_int_t)id, "name",
			 pool && name ? json_sprintf("%s/%s", pool, name) : json_null());
}

static const char *protocol_name(const struct shunt_trace *t)
{
	switch (t->protocol) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
		return "icmp";
	case IPPROTO_ICMPV6:
		return "icmpv6";
	default:
		return NULL;
	}
}

static json_t *flow_json(const struct shunt_trace *t)
{
	char source[ADDR_TEXT_MAX], destination[ADDR_TEXT_MAX];
	const char *protocol = protocol_name(t);
	bool ports = t->known & SHUNT_TRACE_FLOW;
	uint16_t raw[2];

	memcpy(raw, &t->ports, sizeof(raw));
	return json_pack("{s:o, s:s, s:o, s:s, s:o, s:b, s:s}", "protocol",
			 protocol ? json_string(protocol) : json_sprintf("%u", t->protocol), "source",
			 addr_format(&t->source, source), "source_port",
			 ports ? json_integer(ntohs(raw[0])) : json_null(), "destination",
			 addr_format(&t->destination, destination), "destination_port",
			 ports ? json_integer(ntohs(raw[1])) : json_null(), "quoted", (int)t->quoted, "part",
			 NAME_OF(parts, t->part));
}

static json_t *entry_json(uint64_t word, const struct explain_names *names)
{
	if (!word)
		return json_null();
	return json_pack("{s:s, s:o, s:i, s:o}", "state", flowtable_states[SHUNT_FLOW_STATUS(word)], "backend",
			 backend_named(names, SHUNT_FLOW_BACKEND(word)), "generation", (int)SHUNT_FLOW_GENERATION(word),
			 "word", hex64(word));
}

static json_t *transit_json(const struct shunt_trace *t, const struct explain_names *names)
{
	if (!(t->known & SHUNT_TRACE_TRANSIT))
		return json_null();
	return json_pack("{s:o, s:b, s:s, s:o, s:o, s:b}", "base", backend_named(names, t->base & ~SHUNT_SLOT_LEARN),
			 "learn", (int)!!(t->base & SHUNT_SLOT_LEARN), "kind", NAME_OF(kinds, t->kind), "entry",
			 entry_json(t->entry, names), "entry_after",
			 t->refused ? json_null() : entry_json(t->next, names), "refused", (int)t->refused);
}

static json_t *steering_json(const struct shunt_trace *t, const struct explain_names *names)
{
	char digest[17];
	json_t *out;

	if (!(t->known & SHUNT_TRACE_SERVICE))
		return json_null();
	out = json_pack("{s:s, s:o, s:{s:I, s:o}}", "hash_mode", model_hash_names[t->hash_mode], "hash", hex64(t->hash),
			"pool", "index", (json_int_t)t->pool, "name", name_of(names->pools, "index", t->pool));
	if (!(t->known & SHUNT_TRACE_TABLE))
		return out;
	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)t->digest);
	json_object_update_missing_new(
		out, json_pack("{s:I, s:I, s:s, s:I, s:I, s:o, s:b, s:o}", "epoch", (json_int_t)t->epoch, "phase",
			       (json_int_t)t->phase, "digest", digest, "slots", (json_int_t)t->slots, "slot",
			       (json_int_t)t->slot, "owner", backend_named(names, t->owner), "tracked", (int)t->tracked,
			       "transition", transit_json(t, names)));
	return out;
}

static json_t *service_json(const struct shunt_trace *t, const struct explain_names *names)
{
	if (!(t->known & (SHUNT_TRACE_SERVICE | SHUNT_TRACE_NOTED)))
		return json_null();
	return json_pack("{s:I, s:o, s:b}", "index", (json_int_t)t->counter, "name",
			 name_of(names->services, "index", t->counter), "whole_address", (int)t->by_address);
}

/* Of a ready outer header: its addresses; null with l2. */
static json_t *outer_address(const struct shunt_backend *entry, bool destination)
{
	bool v6 = entry->encap == SHUNT_ENCAP_IPIP6 || entry->encap == SHUNT_ENCAP_GUE6;
	char text[INET6_ADDRSTRLEN];
	const uint8_t *at = entry->outer + (v6 ? 8 + 16 * destination : 12 + 4 * destination);

	if (entry->encap == SHUNT_ENCAP_NONE || entry->encap >= SHUNT_ENCAP_L2)
		return json_null();
	return json_string(inet_ntop(v6 ? AF_INET6 : AF_INET, at, text, sizeof(text)));
}

static json_t *backend_json(const struct shunt_trace *t, const struct explain_names *names)
{
	const struct shunt_backend *entry = &t->entry_of_backend;
	uint64_t state = entry->state;
	json_t *out;

	if (!(t->known & SHUNT_TRACE_BACKEND))
		return json_null();
	out = backend_named(names, t->backend);
	json_object_update_missing_new(
		out,
		json_pack("{s:b, s:b, s:b, s:i, s:i, s:s, s:i, s:o, s:o, s:i, s:o}", "present",
			  (int)!!(state & SHUNT_BACKEND_PRESENT), "up", (int)!!(state & SHUNT_BACKEND_UP), "draining",
			  (int)!!(state & SHUNT_BACKEND_DRAINING), "generation", (int)SHUNT_BACKEND_GENERATION(state),
			  "mtu", (int)SHUNT_BACKEND_MTU(state), "encapsulation", NAME_OF(encapsulations, entry->encap),
			  "overhead", (int)entry->overhead, "outer_source", outer_address(entry, false),
			  "outer_destination", outer_address(entry, true), "gue_port",
			  (int)ntohs((SHUNT_FORCE uint16_t)entry->port), "state_word", hex64(state)));
	return out;
}

static json_t *way_json(const struct shunt_trace *t)
{
	char name[IF_NAMESIZE];
	uint8_t bytes[8];

	if (!(t->known & SHUNT_TRACE_WAY))
		return json_null();
	memcpy(bytes, &t->hop, sizeof(bytes));
	return json_pack("{s:i, s:I, s:o, s:o, s:o, s:I, s:I, s:I}", "index",
			 (int)SHUNT_BACKEND_NEXTHOP(t->entry_of_backend.state), "ifindex", (json_int_t)t->iface.ifindex,
			 "interface", if_indextoname(t->iface.ifindex, name) ? json_string(name) : json_null(), "mac",
			 mac(bytes), "source_mac", mac(t->iface.mac), "packet_bytes", (json_int_t)t->length,
			 "overhead_bytes", (json_int_t)t->taken, "mtu",
			 (json_int_t)SHUNT_BACKEND_MTU(t->entry_of_backend.state));
}

static json_t *answer_json(const struct shunt_trace *t)
{
	if (!(t->known & SHUNT_TRACE_ANSWER))
		return json_null();
	return json_pack("{s:s, s:o}", "kind", NAME_OF(answers, t->answer), "mtu",
			 t->answer == SHUNT_ANSWER_IS_TOO_BIG ? json_integer(t->answer_mtu) : json_null());
}

static json_t *output_json(const struct explain_result *result)
{
	const struct shunt_backend *entry = &result->trace.entry_of_backend;
	bool gue = entry->encap == SHUNT_ENCAP_GUE4 || entry->encap == SHUNT_ENCAP_GUE6;
	char *text = malloc(2 * result->length + 1);
	json_t *out;

	if (!text)
		return json_null();
	for (size_t i = 0; i < result->length; i++)
		sprintf(text + 2 * i, "%02x", result->frame[i]);
	out = json_pack(
		"{s:I, s:o, s:s#}", "bytes", (json_int_t)result->length, "layers",
		explain_decode(result->frame, result->length, gue ? ntohs((SHUNT_FORCE uint16_t)entry->port) : 0),
		"hex", text, (int)(2 * result->length));
	free(text);
	return out;
}

json_t *explain_json(const struct explain_result *result, const struct explain_names *names)
{
	const struct shunt_trace *t = &result->trace;
	struct explain_reason reason = explain_reason(t->reason);
	bool sent = result->action != XDP_DROP && result->action != XDP_ABORTED;

	return json_pack(
		"{s:{s:s, s:s, s:s, s:s}, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "verdict", "reason", reason.name,
		"class", reason.class, "action", NAME_OF(actions, (unsigned int)result->action), "meaning",
		reason.sentence, "flow", t->known & SHUNT_TRACE_ADDRESSES ? flow_json(t) : json_null(), "service",
		service_json(t, names), "steering", steering_json(t, names), "backend", backend_json(t, names),
		"next_hop", way_json(t), "answer", answer_json(t), "output", sent ? output_json(result) : json_null());
}
