/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl explain: the decision in sentences. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd_explain.h"
#include "ctl.h"

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "?";
}

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool holds(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static void say(json_t *sentences, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(json_t *sentences, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	json_array_append_new(sentences, json_vsprintf(format, args));
	va_end(args);
}

/* "backend web/web1", or "backend number 3" where no daemon tells the name; in a buffer of the caller's. */
#define NAME_MAX_TEXT 160
static const char *named(const json_t *object, const char *what, char out[static NAME_MAX_TEXT])
{
	const char *name = json_string_value(json_object_get(object, "name"));
	const json_t *id = json_object_get(object, "id");

	if (!json_is_object(object))
		snprintf(out, NAME_MAX_TEXT, "no %s", what);
	else if (name)
		snprintf(out, NAME_MAX_TEXT, "%s %s", what, name);
	else
		snprintf(out, NAME_MAX_TEXT, "%s number %" JSON_INTEGER_FORMAT, what,
			 json_integer_value(id ? id : json_object_get(object, "index")));
	return out;
}

static void endpoint(const json_t *flow, const char *key, char buffer[static NAME_MAX_TEXT])
{
	const json_t *port = json_object_get(flow, strcmp(key, "source") == 0 ? "source_port" : "destination_port");
	const char *address = text(flow, key);

	if (!json_is_integer(port))
		snprintf(buffer, NAME_MAX_TEXT, "%s", address);
	else
		snprintf(buffer, NAME_MAX_TEXT,
			 strchr(address, ':') ? "[%s]:%" JSON_INTEGER_FORMAT : "%s:%" JSON_INTEGER_FORMAT, address,
			 json_integer_value(port));
}

static void say_flow(json_t *out, const json_t *flow)
{
	char source[NAME_MAX_TEXT], destination[NAME_MAX_TEXT];

	if (!json_is_object(flow)) {
		say(out, "The frame holds no IPv4 or IPv6 packet.");
		return;
	}
	endpoint(flow, "source", source);
	endpoint(flow, "destination", destination);
	if (holds(flow, "quoted"))
		say(out, "An ICMP error, which is steered as the flow of the packet it quotes: %s from %s to %s.",
		    text(flow, "protocol"), source, destination);
	else
		say(out, "The packet is %s%s from %s to %s%s%s.",
		    strspn(text(flow, "protocol"), "0123456789") ? "IP protocol " : "", text(flow, "protocol"), source,
		    destination, strcmp(text(flow, "part"), "whole") != 0 ? ", a " : "",
		    strcmp(text(flow, "part"), "whole") != 0 ? text(flow, "part") : "");
}

/* Some limits depend on how the program was attached. */
static void say_input(json_t *out, const json_t *input)
{
	if (!holds(input, "attached"))
		say(out,
		    "Interface %s does not have the program of this instance: what comes in there is the host's, and "
		    "this is what the program would do with it.",
		    text(input, "interface"));
	if (holds(input, "frags"))
		say(out,
		    "The frame, %" JSON_INTEGER_FORMAT
		    " bytes, does not fit one buffer: this is what an interface with a large MTU, "
		    "whose program takes frames of several segments, does with it; other interfaces have no frames as "
		    "large.",
		    number(input, "bytes"));
}

static void say_service(json_t *out, const struct shunt_trace *t, const json_t *decision)
{
	const json_t *service = json_object_get(decision, "service");
	char name[NAME_MAX_TEXT];

	if (t->reason == SHUNT_PASS_NO_CONFIG || !(t->known & SHUNT_TRACE_ADDRESSES))
		return;
	if (t->reason == SHUNT_PASS_NOT_SERVICE || t->known & SHUNT_TRACE_BEHIND)
		say(out, "The destination is no service address.");
	else if (t->reason == SHUNT_DROP_UNKNOWN_PORT || t->reason == SHUNT_PASS_UNKNOWN_PORT ||
		 t->reason == SHUNT_ANSWER_REFUSED)
		say(out, "The destination is a service address, but no service of it has this port.");
	else if (!json_is_object(service))
		say(out, "The destination is a service address.");
	else if (t->known & SHUNT_TRACE_NOTED)
		say(out, "It belongs to %s: its first fragment left a note where it went.",
		    named(service, "service", name));
	else if (t->by_address)
		say(out, "It is for the service address as a whole, and counts for %s.",
		    named(service, "service", name));
	else
		say(out, "It is for %s.", named(service, "service", name));
}

static void say_entry(json_t *out, const json_t *transition)
{
	const json_t *entry = json_object_get(transition, "entry"), *after = json_object_get(transition, "entry_after");
	char name[NAME_MAX_TEXT], other[NAME_MAX_TEXT];

	if (json_is_object(entry))
		say(out, "The flow table has an entry for the flow: %s, on %s.", text(entry, "state"),
		    named(json_object_get(entry, "backend"), "backend", name));
	else
		say(out, "The flow table has no entry for the flow.");
	if (holds(transition, "refused"))
		say(out, "There is no room for a new entry, so the packet goes where the packets after it will.");
	else if (json_is_object(after) && !json_equal(entry, after))
		say(out, "As a %s it would leave an entry: %s, on %s.", text(transition, "kind"), text(after, "state"),
		    named(json_object_get(after, "backend"), "backend", other));
}

static void say_steering(json_t *out, const json_t *steering)
{
	const json_t *transition = json_object_get(steering, "transition");
	char pool[NAME_MAX_TEXT], owner[NAME_MAX_TEXT], base[NAME_MAX_TEXT];

	if (!json_is_object(steering))
		return;
	named(json_object_get(steering, "pool"), "pool", pool);
	if (!json_object_get(steering, "slot")) {
		say(out, "There is no table of %s.", pool);
		return;
	}
	say(out,
	    "The hash (%s) is %s: slot %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
	    " of %s, epoch %" JSON_INTEGER_FORMAT ", whose owner is %s.",
	    text(steering, "hash_mode"), text(steering, "hash"), number(steering, "slot"), number(steering, "slots"),
	    pool, number(steering, "epoch"), named(json_object_get(steering, "owner"), "backend", owner));
	if (!json_is_object(transition))
		return;
	say(out, "The slot is in transition: connections without an entry belong to %s%s.",
	    named(json_object_get(transition, "base"), "backend", base),
	    holds(transition, "learn") ? ", and so do new flows of UDP for now" : ", new ones to the owner");
	say_entry(out, transition);
}

/* Of a prefix, the address that this packet has; where it does not leave so, the prefix's first. */
static const char *outer_source(const json_t *backend, const json_t *output)
{
	const json_t *layer;
	size_t i;

	json_array_foreach (json_object_get(output, "layers"), i, layer)
		if (!strcmp(text(layer, "destination"), text(backend, "outer_destination")))
			return text(layer, "source");
	return text(backend, "outer_source");
}

static void say_backend(json_t *out, const json_t *decision)
{
	const json_t *backend = json_object_get(decision, "backend"), *way = json_object_get(decision, "next_hop");
	char name[NAME_MAX_TEXT];

	if (!json_is_object(backend))
		return;
	say(out, "It falls to %s, which is %s%s.", named(backend, "backend", name),
	    !holds(backend, "present") ? "gone"
	    : holds(backend, "up")     ? "up"
				       : "down",
	    holds(backend, "draining") ? " and draining" : "");
	if (!json_is_object(way))
		return;
	if (json_is_string(json_object_get(backend, "outer_destination")))
		say(out, "What goes there is encapsulated with %s, from %s to %s.", text(backend, "encapsulation"),
		    outer_source(backend, json_object_get(decision, "output")), text(backend, "outer_destination"));
	else
		say(out, "What goes there gets new MAC addresses alone (%s).", text(backend, "encapsulation"));
	say(out,
	    "The next hop is %s on %s. With what is put in front the packet counts %" JSON_INTEGER_FORMAT
	    " + %" JSON_INTEGER_FORMAT " bytes; the path takes %" JSON_INTEGER_FORMAT ".",
	    text(way, "mac"), text(way, "interface"), number(way, "packet_bytes"), number(way, "overhead_bytes"),
	    number(way, "mtu"));
}

static void say_answer(json_t *out, const struct shunt_trace *t, const json_t *answer)
{
	if (t->known & SHUNT_TRACE_BEHIND && t->told_mtu)
		say(out, "It is an error from the way to a backend, which would take its path MTU down to %u.",
		    t->told_mtu);
	else if (t->known & SHUNT_TRACE_BEHIND)
		say(out, "It is an error from the way to a backend, which tells no MTU.");
	if (!json_is_object(answer))
		return;
	if (json_is_integer(json_object_get(answer, "mtu")))
		say(out,
		    "It is too big: the sender is told to send at most %" JSON_INTEGER_FORMAT
		    " bytes, unless the limit on errors is reached.",
		    number(answer, "mtu"));
	else
		say(out, "The sender is told (%s), unless the limit on errors is reached.", text(answer, "kind"));
}

json_t *explain_sentences(const struct explain_result *result, const json_t *decision)
{
	const json_t *verdict = json_object_get(decision, "verdict");
	json_t *out = json_array();

	say_input(out, json_object_get(decision, "input"));
	say_flow(out, json_object_get(decision, "flow"));
	say_service(out, &result->trace, decision);
	say_steering(out, json_object_get(decision, "steering"));
	say_backend(out, decision);
	say_answer(out, &result->trace, json_object_get(decision, "answer"));
	say(out, "Verdict: %s, counted as %s. %s", text(verdict, "action"), text(verdict, "reason"),
	    text(verdict, "meaning"));
	return out;
}

/* ---- for people ---- */

static void print_layer(const json_t *layer)
{
	const char *key;
	json_t *value;

	printf("  %-9s", text(layer, "layer"));
	json_object_foreach ((json_t *)layer, key, value) {
		const struct ctl_column column = {"", key, CTL_TEXT, NULL};
		char *cell;

		if (!strcmp(key, "layer"))
			continue;
		cell = ctl_cell(layer, &column);
		printf(" %s=%s", key, cell ? cell : "?");
		free(cell);
	}
	putchar('\n');
}

void explain_print(const json_t *decision)
{
	const json_t *output = json_object_get(decision, "output"), *sentence, *layer;
	size_t i;

	json_array_foreach (json_object_get(decision, "sentences"), i, sentence)
		puts(json_string_value(sentence));
	if (!json_is_object(output))
		return;
	printf("\nThe packet as it leaves, %" JSON_INTEGER_FORMAT " bytes:\n", number(output, "bytes"));
	json_array_foreach (json_object_get(output, "layers"), i, layer)
		print_layer(layer);
}
