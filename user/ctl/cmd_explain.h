/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of `shuntctl explain`. */
#ifndef SHUNT_CTL_CMD_EXPLAIN_H
#define SHUNT_CTL_CMD_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include <shunt/types.h>

#include "addr.h"
#include "explain.h"

/* ---- the packet to build (explain_build.c) ---- */

#define EXPLAIN_TAGS_MAX 3 /* one more than the packet path walks */

struct explain_packet {
	uint8_t protocol; /* IPPROTO_TCP, IPPROTO_UDP or IPPROTO_ICMP, which is ICMPv6 for IPv6 addresses */
	union shunt_address source, destination;
	unsigned int source_port, destination_port;
	uint8_t tcp_flags;
	uint8_t ttl, tos;
	bool fragmentable; /* IPv4 without DF */
	uint32_t length;   /* of the IP packet; 0: no payload */
	unsigned int n_tags;
	uint16_t tag[EXPLAIN_TAGS_MAX]; /* outermost first */
	uint8_t mac[6];			/* of the interface that it comes in by */
};

/* Bytes of the headers from IP on: the least `length`. */
uint32_t explain_headers(const struct explain_packet *packet);

/* A frame with right lengths and checksums, malloc'd; NULL if out of memory. */
uint8_t *explain_build(const struct explain_packet *packet, uint32_t *length);

/* ---- frames to fields (explain_decode.c) ---- */

/* An array of layers, objects with "layer" and its fields.  gue_port: UDP destination that carries GUE, 0 for none. */
json_t *explain_decode(const uint8_t *frame, size_t length, uint16_t gue_port);

/* ---- the decision in words (explain_words.c) ---- */

/* What is known beside the trace. */
struct explain_names {
	json_t *services, *pools, *backends; /* the daemon's rows, or NULL */
};

/* The documented object; a new reference. */
json_t *explain_json(const struct explain_result *result, const struct explain_names *names);

/* An array of sentences for what explain_json() said. */
json_t *explain_sentences(const struct explain_result *result, const json_t *decision);

void explain_print(const json_t *decision);

#endif
