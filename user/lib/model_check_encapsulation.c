/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "addr.h"
#include "model_check.h"

/* Settings that the type has not. */
static void check_settings(const struct model_pool *pool, struct report *report)
{
	const struct model_source *sources[] = {&pool->source4, &pool->source6};
	bool checksum_given = pool->udp6_checksum != MODEL_UDP6_COMPUTED || pool->udp6_checksum_place.line;
	char text[ADDR_TEXT_MAX];

	if (pool->gue_port && pool->encapsulation != MODEL_GUE)
		complain(report, pool->gue_port_place,
			 "pool \"%s\": port is for the encapsulation gue: leave it out, or use that", pool->name);
	if (checksum_given && pool->encapsulation != MODEL_GUE)
		complain(report, pool->udp6_checksum_place,
			 "pool \"%s\": udp6-checksum is for the encapsulation gue: leave it out, or use that",
			 pool->name);
	for (size_t i = 0; i < 2 && pool->encapsulation == MODEL_L2; i++) {
		if (sources[i]->given)
			complain(report, sources[i]->place,
				 "pool \"%s\": source %s: l2 leaves the client's packet as it is, without an outer "
				 "source: leave it out",
				 pool->name, model_source_text(sources[i], text));
	}
}

/* An address that its holder would take for its own, or we for a client's destination. */
static void check_holds(const struct model *model, const struct model_pool *pool, const struct model_source *source,
			struct report *report)
{
	char text[ADDR_TEXT_MAX], other[ADDR_TEXT_MAX];

	for (size_t i = 0; i < pool->n_backends; i++) {
		if (prefix_holds(&source->prefix, &pool->backends[i].address))
			complain(report, source->place,
				 "pool \"%s\": source %s holds the address %s of its backend \"%s\", which would drop "
				 "packets from itself: use a prefix that nobody else has",
				 pool->name, model_source_text(source, text),
				 addr_format(&pool->backends[i].address, other), pool->backends[i].name);
	}
	for (size_t i = 0; i < model->n_services; i++) {
		if (model_source_bits(source) && prefix_holds(&source->prefix, &model->services[i].address))
			complain(report, source->place,
				 "pool \"%s\": source %s holds the address %s of service \"%s\": use a prefix that "
				 "nobody "
				 "else has",
				 pool->name, model_source_text(source, text),
				 addr_format(&model->services[i].address, other), model->services[i].name);
	}
}

static bool has_family(const struct model_pool *pool, bool v4)
{
	for (size_t i = 0; i < pool->n_backends; i++) {
		if (addr_is_v4(&pool->backends[i].address) == v4)
			return true;
	}
	return false;
}

static void check_source(const struct model *model, const struct model_pool *pool, const struct model_source *source,
			 bool v4, struct report *report)
{
	unsigned int bits = model_source_bits(source), most = v4 ? 32 - MODEL_SOURCE4_MIN : 128 - MODEL_SOURCE6_MIN;
	const char *family = v4 ? "IPv4" : "IPv6";
	union shunt_address address;
	char text[ADDR_TEXT_MAX];

	memcpy(address.byte, source->prefix.address, sizeof(address.byte));
	model_source_text(source, text);
	if (!addr_is_unicast(&address) || addr_is_v4(&address) != v4)
		complain(report, source->place, "pool \"%s\": source %s is not a usable %s %s: give %s", pool->name,
			 text, family, bits ? "prefix" : "address",
			 bits ? "one that is routed to this host" : "an address of this host");
	else if (bits > most)
		complain(report, source->place,
			 "pool \"%s\": source %s is too wide: give a prefix of /%u or longer that is this host's alone",
			 pool->name, text, v4 ? MODEL_SOURCE4_MIN : MODEL_SOURCE6_MIN);
	/* Only a document says all at once: verbs add and take backends one by one, and the last of a family is no
	 * error. */
	else if (pool->n_backends && source->place.line && !has_family(pool, v4))
		complain(report, source->place,
			 "pool \"%s\": source %s is never used, because no backend of the pool has an %s address: "
			 "remove it, or add such a backend",
			 pool->name, text, family);
	else
		check_holds(model, pool, source, report);
}

void model_check_encapsulation(const struct model *model, const struct model_pool *pool, struct report *report)
{
	check_settings(pool, report);
	if (pool->encapsulation == MODEL_L2)
		return;
	if (pool->source4.given)
		check_source(model, pool, &pool->source4, true, report);
	if (pool->source6.given)
		check_source(model, pool, &pool->source6, false, report);
}
