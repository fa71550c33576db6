/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl explain: a frame, field by field. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "cmd_explain.h"

/* What is left of the frame, and what it is. */
struct decoder {
	const uint8_t *at;
	size_t left;
	uint16_t gue_port;
	json_t *layers;
};

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
	return get16(at) << 16 | get16(at + 2);
}

static json_t *hex(uint32_t value, int digits)
{
	char text[16];

	snprintf(text, sizeof(text), "0x%0*x", digits, value);
	return json_string(text);
}

static json_t *mac(const uint8_t *at)
{
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", at[0], at[1], at[2], at[3], at[4], at[5]);
	return json_string(text);
}

static json_t *address(const uint8_t *at, int family)
{
	char text[INET6_ADDRSTRLEN];

	return json_string(inet_ntop(family, at, text, sizeof(text)));
}

/* Add a layer (takes the reference) and step over its `size` bytes. */
static void add(struct decoder *d, json_t *layer, size_t size)
{
	json_array_append_new(d->layers, layer);
	d->at += size;
	d->left -= size;
}

static bool ip4_sum_is_right(const uint8_t *at, size_t size)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i += 2)
		sum += get16(at + i);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/* Each reads one header and returns what follows: an ethertype, an IP protocol, or one of these. */
enum { END = -1 };

static int link_type(struct decoder *d)
{
	int type;

	if (d->left < ETH_HLEN)
		return END;
	type = (int)get16(d->at + 12);
	add(d,
	    json_pack("{s:s, s:o, s:o, s:o}", "layer", "ethernet", "source", mac(d->at + ETH_ALEN), "destination",
		      mac(d->at), "type", hex((uint32_t)type, 4)),
	    ETH_HLEN);
	while ((type == ETH_P_8021Q || type == ETH_P_8021AD) && d->left >= 4) {
		uint32_t tag = get16(d->at);

		type = (int)get16(d->at + 2);
		add(d,
		    json_pack("{s:s, s:i, s:i, s:o}", "layer", "vlan", "id", (int)(tag & 0xfff), "priority",
			      (int)(tag >> 13), "type", hex((uint32_t)type, 4)),
		    4);
	}
	return type;
}

static int ip4(struct decoder *d)
{
	size_t size = d->left >= 20 ? (d->at[0] & 15u) * 4 : 0;
	uint32_t fragment;
	int protocol;

	if (size < 20 || d->left < size)
		return END;
	fragment = get16(d->at + 6);
	protocol = d->at[9];
	json_t *layer = json_pack("{s:s, s:o, s:o, s:i, s:i, s:i, s:i, s:b, s:b, s:i, s:i, s:i, s:o, s:b}", "layer",
				  "ipv4", "source", address(d->at + 12, AF_INET), "destination",
				  address(d->at + 16, AF_INET), "dscp", d->at[1] >> 2, "ecn", d->at[1] & 3,
				  "total_length", (int)get16(d->at + 2), "id", (int)get16(d->at + 4), "dont_fragment",
				  (int)(fragment & 0x4000), "more_fragments", (int)(fragment & 0x2000), "offset",
				  (int)(fragment & 0x1fff) * 8, "ttl", d->at[8], "protocol", protocol, "checksum",
				  hex(get16(d->at + 10), 4), "checksum_right", (int)ip4_sum_is_right(d->at, size));
	add(d, layer, size);
	return fragment & 0x1fff ? END : protocol;
}

static bool is_extension(int next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS ||
	       next == IPPROTO_FRAGMENT;
}

static int ip6(struct decoder *d)
{
	uint32_t word;
	int next;

	if (d->left < 40)
		return END;
	word = get32(d->at);
	next = d->at[6];
	add(d,
	    json_pack("{s:s, s:o, s:o, s:i, s:i, s:o, s:i, s:i, s:i}", "layer", "ipv6", "source",
		      address(d->at + 8, AF_INET6), "destination", address(d->at + 24, AF_INET6), "dscp",
		      (int)(word >> 22 & 0x3f), "ecn", (int)(word >> 20 & 3), "flow_label", hex(word & 0xfffff, 5),
		      "payload_length", (int)get16(d->at + 4), "next_header", next, "hop_limit", d->at[7]),
	    40);
	while (is_extension(next) && d->left >= 8) {
		size_t size = next == IPPROTO_FRAGMENT ? 8 : (d->at[1] + 1u) * 8;
		bool later = next == IPPROTO_FRAGMENT && get16(d->at + 2) & 0xfff8;
		int type = next;

		if (d->left < size)
			return END;
		next = d->at[0];
		add(d,
		    json_pack("{s:s, s:i, s:i, s:i}", "layer", "ipv6-extension", "type", type, "next_header", next,
			      "bytes", (int)size),
		    size);
		if (later)
			return END;
	}
	return next;
}

static void tcp(struct decoder *d)
{
	static const char letters[] = "FSRPAUEC";
	size_t size = d->left >= 20 ? (d->at[12] >> 4) * 4u : 0;
	char flags[9] = "";

	if (size < 20 || d->left < size)
		return;
	for (unsigned int i = 0; i < 8; i++)
		if (d->at[13] & 1u << i)
			strncat(flags, &letters[i], 1);
	add(d,
	    json_pack("{s:s, s:i, s:i, s:I, s:I, s:s, s:i, s:o}", "layer", "tcp", "source_port", (int)get16(d->at),
		      "destination_port", (int)get16(d->at + 2), "sequence", (json_int_t)get32(d->at + 4),
		      "acknowledgment", (json_int_t)get32(d->at + 8), "flags", flags, "window", (int)get16(d->at + 14),
		      "checksum", hex(get16(d->at + 16), 4)),
	    size);
}

static void icmp(struct decoder *d, bool v6)
{
	if (d->left < 8)
		return;
	add(d,
	    json_pack("{s:s, s:i, s:i, s:o, s:o}", "layer", v6 ? "icmpv6" : "icmp", "type", d->at[0], "code", d->at[1],
		      "checksum", hex(get16(d->at + 2), 4), "rest", hex(get32(d->at + 4), 8)),
	    8);
}

/* Returns whether an IP packet is inside: the protocol, or END. */
static int udp(struct decoder *d)
{
	uint32_t port;
	int inner;

	if (d->left < 8)
		return END;
	port = get16(d->at + 2);
	add(d,
	    json_pack("{s:s, s:i, s:i, s:i, s:o}", "layer", "udp", "source_port", (int)get16(d->at), "destination_port",
		      (int)port, "length", (int)get16(d->at + 4), "checksum", hex(get16(d->at + 6), 4)),
	    8);
	if (!d->gue_port || port != d->gue_port || d->left < 4)
		return END;
	d->gue_port = 0;
	inner = d->at[1];
	add(d,
	    json_pack("{s:s, s:i, s:i, s:o}", "layer", "gue", "variant", d->at[0] >> 6, "protocol", inner, "flags",
		      hex(get16(d->at + 2), 4)),
	    4);
	return inner;
}

static int above_ip(struct decoder *d, int protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
		tcp(d);
		return END;
	case IPPROTO_UDP:
		return udp(d);
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		icmp(d, protocol == IPPROTO_ICMPV6);
		return END;
	default:
		return protocol;
	}
}

json_t *explain_decode(const uint8_t *frame, size_t length, uint16_t gue_port)
{
	struct decoder d = {.at = frame, .left = length, .gue_port = gue_port, .layers = json_array()};
	int type = link_type(&d), protocol = type == ETH_P_IP ? IPPROTO_IPIP : type == ETH_P_IPV6 ? IPPROTO_IPV6 : END;

	/* An outer header, one inside it, and what an ICMP error quotes is left as bytes. */
	for (unsigned int depth = 0; depth < 3 && (protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6); depth++)
		protocol = above_ip(&d, protocol == IPPROTO_IPIP ? ip4(&d) : ip6(&d));
	if (d.left)
		json_array_append_new(d.layers, json_pack("{s:s, s:I}", "layer", "data", "bytes", (json_int_t)d.left));
	return d.layers;
}
