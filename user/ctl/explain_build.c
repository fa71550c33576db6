/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl explain: a packet from words of the command line. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_explain.h"

/* Locally administered: nobody's. */
static const uint8_t client_mac[ETH_ALEN] = {0x02, 0, 0, 0, 0, 0x01};

static bool is_icmp(const struct explain_packet *packet)
{
	return packet->protocol == IPPROTO_ICMP;
}

static uint32_t transport_header(const struct explain_packet *packet)
{
	return packet->protocol == IPPROTO_TCP ? sizeof(struct tcphdr) : 8; /* UDP, echo */
}

uint32_t explain_headers(const struct explain_packet *packet)
{
	uint32_t ip = addr_is_v4(&packet->destination) ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);

	return ip + transport_header(packet);
}

/* Of big-endian words as loaded (RFC 1071); an odd last byte is padded. */
static uint64_t sum_words(const void *data, size_t length)
{
	const uint8_t *bytes = data;
	uint64_t sum = 0;
	uint16_t word;

	for (; length > 1; length -= 2, bytes += 2) {
		memcpy(&word, bytes, sizeof(word));
		sum += word;
	}
	if (length) {
		word = 0;
		memcpy(&word, bytes, 1);
		sum += word;
	}
	return sum;
}

static uint16_t checksum(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void write_link(const struct explain_packet *packet, uint8_t *at, uint16_t type)
{
	memcpy(at, packet->mac, ETH_ALEN);
	memcpy(at + ETH_ALEN, client_mac, ETH_ALEN);
	at += 2 * ETH_ALEN;
	for (unsigned int i = 0; i < packet->n_tags; i++, at += 4) {
		uint16_t tag[2] = {htons(packet->n_tags > i + 1 ? ETH_P_8021AD : ETH_P_8021Q), htons(packet->tag[i])};

		memcpy(at, tag, sizeof(tag));
	}
	type = htons(type);
	memcpy(at, &type, sizeof(type));
}

/* Returns what the pseudo header adds to the checksum of TCP, UDP and ICMPv6. */
static uint64_t write_ip4(const struct explain_packet *packet, uint8_t *at, uint32_t length)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = packet->tos,
		.tot_len = htons((uint16_t)length),
		.frag_off = packet->fragmentable ? 0 : htons(IP_DF),
		.ttl = packet->ttl,
		.protocol = packet->protocol,
		.saddr = (SHUNT_FORCE uint32_t)packet->source.word[3],
		.daddr = (SHUNT_FORCE uint32_t)packet->destination.word[3],
	};

	ip.check = checksum(sum_words(&ip, sizeof(ip)));
	memcpy(at, &ip, sizeof(ip));
	if (is_icmp(packet))
		return 0;
	return sum_words(&ip.saddr, 8) + htons(packet->protocol) + htons((uint16_t)(length - sizeof(ip)));
}

static uint64_t write_ip6(const struct explain_packet *packet, uint8_t *at, uint32_t length)
{
	uint8_t next = is_icmp(packet) ? IPPROTO_ICMPV6 : packet->protocol;
	struct ip6_hdr ip = {.ip6_hlim = packet->ttl, .ip6_nxt = next};

	ip.ip6_flow = htonl(6u << 28 | (uint32_t)packet->tos << 20);
	ip.ip6_plen = htons((uint16_t)(length - sizeof(ip)));
	memcpy(&ip.ip6_src, &packet->source, sizeof(ip.ip6_src));
	memcpy(&ip.ip6_dst, &packet->destination, sizeof(ip.ip6_dst));
	memcpy(at, &ip, sizeof(ip));
	return sum_words(&ip.ip6_src, 32) + htons(next) + ip.ip6_plen;
}

/* Writes the header; returns where its checksum stands. */
static size_t write_transport(const struct explain_packet *packet, uint8_t *at, uint32_t length)
{
	uint16_t source = htons((uint16_t)packet->source_port), destination = htons((uint16_t)packet->destination_port);
	struct tcphdr tcp = {.source = source, .dest = destination, .doff = 5, .seq = htonl(1), .window = htons(65535)};
	struct udphdr udp = {.source = source, .dest = destination, .len = htons((uint16_t)length)};

	if (packet->protocol == IPPROTO_TCP) {
		memcpy(at, &tcp, sizeof(tcp));
		at[13] = packet->tcp_flags;
		return 16;
	}
	if (packet->protocol == IPPROTO_UDP) {
		memcpy(at, &udp, sizeof(udp));
		return 6;
	}
	at[0] = addr_is_v4(&packet->destination) ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
	at[7] = 1; /* sequence */
	return 2;
}

uint8_t *explain_build(const struct explain_packet *packet, uint32_t *length)
{
	bool v4 = addr_is_v4(&packet->destination);
	uint32_t total = packet->length ? packet->length : explain_headers(packet);
	uint32_t link = ETH_HLEN + 4 * packet->n_tags, header = v4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);
	uint8_t *frame = calloc(1, link + total), *at;
	size_t check_at;
	uint64_t sum;
	uint16_t check;

	if (!frame)
		return NULL;
	write_link(packet, frame, v4 ? ETH_P_IP : ETH_P_IPV6);
	at = frame + link;
	sum = v4 ? write_ip4(packet, at, total) : write_ip6(packet, at, total);
	at += header;
	check_at = write_transport(packet, at, total - header);
	check = checksum(sum + sum_words(at, total - header));
	if (packet->protocol == IPPROTO_UDP && !check)
		check = 0xffff;
	memcpy(at + check_at, &check, sizeof(check));
	*length = link + total;
	return frame;
}
