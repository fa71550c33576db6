/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* IP addresses and prefixes, in the form that the maps use (union shunt_address). */
#ifndef SHUNT_ADDR_H
#define SHUNT_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <shunt/types.h>

#define ADDR_TEXT_MAX 64 /* of "[address]:port" or "address/bits", terminator included */

/* Parse a literal; IPv4-mapped IPv6 becomes IPv4.  0, or -EINVAL and *out untouched.  No scope ids, no names. */
int addr_parse(const char *text, union shunt_address *out);

/* The canonical text (RFC 5952).  Returns `out`. */
const char *addr_format(const union shunt_address *addr, char out[static ADDR_TEXT_MAX]);

/* "192.0.2.10:80", "[2001:db8::10]:443", ":any" for port 0.  Parse: 0 or -EINVAL, outputs untouched on failure. */
int addr_port_parse(const char *text, union shunt_address *addr, unsigned int *port);
const char *addr_port_format(const union shunt_address *addr, unsigned int port, char out[static ADDR_TEXT_MAX]);

/*
 * "192.0.2.0/24" or an address alone; -EINVAL also when bits beyond the length are set.  An IPv6 prefix that holds
 * ::ffff:0:0/96 (::/0 is one) holds every IPv4 address too, as the maps see it.
 */
int prefix_parse(const char *text, struct shunt_prefix *out);
/* The same with bits beyond the length allowed, and cleared: for telling people what they may have meant. */
int prefix_parse_masked(const char *text, struct shunt_prefix *out);
const char *prefix_format(const struct shunt_prefix *prefix, char out[static ADDR_TEXT_MAX]);
bool prefix_holds(const struct shunt_prefix *prefix, const union shunt_address *addr);

bool addr_is_v4(const union shunt_address *addr);
bool addr_is_unspecified(const union shunt_address *addr);
bool addr_equal(const union shunt_address *a, const union shunt_address *b);
int addr_compare(const union shunt_address *a, const union shunt_address *b);

/* As packets and netlink have it: 4 or 16 bytes. */
size_t addr_wire_length(const union shunt_address *addr);
const void *addr_wire_bytes(const union shunt_address *addr);
/* False, and *out untouched, for another length. */
bool addr_from_wire(const void *bytes, size_t length, union shunt_address *out);

/* Usable as a service, backend or outer source: not unspecified, loopback, multicast, broadcast or (IPv6) link-local.
 */
bool addr_is_unicast(const union shunt_address *addr);

#endif
