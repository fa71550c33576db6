/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "addr.h"

#define V4_BITS 96 /* of ::ffff:0:0/96, in front of an IPv4 address */

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

int addr_parse(const char *text, union shunt_address *out)
{
	union shunt_address addr;

	memcpy(addr.byte, v4_mapped, sizeof(v4_mapped));
	if (inet_pton(AF_INET, text, addr.byte + sizeof(v4_mapped)) != 1 && inet_pton(AF_INET6, text, addr.byte) != 1)
		return -EINVAL;
	*out = addr;
	return 0;
}

/* inet_ntop() goes through printf(), and a state has ten thousand addresses. */
static void format_v4(const uint8_t byte[4], char *out)
{
	for (int i = 0; i < 4; i++) {
		if (byte[i] >= 100)
			*out++ = (char)('0' + byte[i] / 100);
		if (byte[i] >= 10)
			*out++ = (char)('0' + byte[i] / 10 % 10);
		*out++ = (char)('0' + byte[i] % 10);
		*out++ = i < 3 ? '.' : '\0';
	}
}

const char *addr_format(const union shunt_address *addr, char out[static ADDR_TEXT_MAX])
{
	if (addr_is_v4(addr))
		format_v4(addr->byte + sizeof(v4_mapped), out);
	else
		inet_ntop(AF_INET6, addr->byte, out, ADDR_TEXT_MAX);
	return out;
}

size_t addr_wire_length(const union shunt_address *addr)
{
	return addr_is_v4(addr) ? 4 : 16;
}

const void *addr_wire_bytes(const union shunt_address *addr)
{
	return addr->byte + 16 - addr_wire_length(addr);
}

bool addr_from_wire(const void *bytes, size_t length, union shunt_address *out)
{
	if (length != 4 && length != 16)
		return false;
	if (length == 4)
		memcpy(out->byte, v4_mapped, sizeof(v4_mapped));
	memcpy(out->byte + 16 - length, bytes, length);
	return true;
}

/* Decimal digits alone, no sign, no leading zero. */
static int parse_decimal(const char *text, unsigned int max, unsigned int *out)
{
	unsigned int value = 0;

	if (!*text || (text[0] == '0' && text[1]))
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		value = value * 10 + (unsigned int)(*text - '0');
		if (value > max)
			return -EINVAL;
	}
	*out = value;
	return 0;
}

/* Copies text[0..length) as a string; -EINVAL if it does not fit. */
static int take(const char *text, size_t length, char out[static ADDR_TEXT_MAX])
{
	if (length >= ADDR_TEXT_MAX)
		return -EINVAL;
	memcpy(out, text, length);
	out[length] = '\0';
	return 0;
}

int addr_port_parse(const char *text, union shunt_address *addr, unsigned int *port)
{
	const char *colon = strrchr(text, ':');
	char literal[ADDR_TEXT_MAX];
	union shunt_address parsed;
	unsigned int number = 0;
	size_t length;
	int ret;

	if (!colon)
		return -EINVAL;
	length = (size_t)(colon - text);
	if (text[0] == '[') {
		if (length < 2 || text[length - 1] != ']' || !memchr(text, ':', length))
			return -EINVAL;
		ret = take(text + 1, length - 2, literal);
	} else {
		if (memchr(text, ':', length))
			return -EINVAL;
		ret = take(text, length, literal);
	}
	if (ret)
		return ret;
	if (strcmp(colon + 1, "any") != 0 && (parse_decimal(colon + 1, 65535, &number) || number == 0))
		return -EINVAL;
	ret = addr_parse(literal, &parsed);
	if (ret)
		return ret;
	*addr = parsed;
	*port = number;
	return 0;
}

const char *addr_port_format(const union shunt_address *addr, unsigned int port, char out[static ADDR_TEXT_MAX])
{
	const char *form = addr_is_v4(addr) ? "%s:%s" : "[%s]:%s";
	char literal[INET6_ADDRSTRLEN], number[12] = "any";

	addr_format(addr, out);
	memcpy(literal, out, sizeof(literal));
	if (port)
		snprintf(number, sizeof(number), "%u", port);
	snprintf(out, ADDR_TEXT_MAX, form, literal, number);
	return out;
}

static void clear_beyond(uint8_t address[16], unsigned int length)
{
	for (unsigned int i = length; i < 128; i++)
		address[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
}

/* Address and length, which counts from the beginning of union shunt_address. */
static int parse_prefix(const char *text, union shunt_address *address, unsigned int *total)
{
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	unsigned int offset, bits;
	char literal[ADDR_TEXT_MAX];
	union shunt_address addr;

	if (take(text, length, literal) || addr_parse(literal, &addr))
		return -EINVAL;
	offset = strchr(literal, ':') ? 0 : V4_BITS; /* the length counts the bits of the notation */
	bits = 128 - offset;
	if (slash && parse_decimal(slash + 1, bits, &bits))
		return -EINVAL;
	*address = addr;
	*total = offset + bits;
	return 0;
}

int prefix_parse_masked(const char *text, struct shunt_prefix *out)
{
	union shunt_address addr;
	unsigned int length;

	if (parse_prefix(text, &addr, &length))
		return -EINVAL;
	clear_beyond(addr.byte, length);
	out->length = length;
	memcpy(out->address, addr.byte, sizeof(out->address));
	return 0;
}

int prefix_parse(const char *text, struct shunt_prefix *out)
{
	struct shunt_prefix prefix;
	union shunt_address addr;
	unsigned int length;

	if (parse_prefix(text, &addr, &length) || prefix_parse_masked(text, &prefix) ||
	    memcmp(prefix.address, addr.byte, sizeof(prefix.address)) != 0)
		return -EINVAL;
	*out = prefix;
	return 0;
}

bool prefix_holds(const struct shunt_prefix *prefix, const union shunt_address *addr)
{
	union shunt_address masked = *addr;

	clear_beyond(masked.byte, prefix->length);
	return memcmp(masked.byte, prefix->address, sizeof(prefix->address)) == 0;
}

const char *prefix_format(const struct shunt_prefix *prefix, char out[static ADDR_TEXT_MAX])
{
	union shunt_address addr;
	unsigned int bits = prefix->length;
	size_t length;

	memcpy(addr.byte, prefix->address, sizeof(addr.byte));
	if (addr_is_v4(&addr) && bits >= V4_BITS)
		bits -= V4_BITS;
	addr_format(&addr, out);
	length = strlen(out);
	snprintf(out + length, ADDR_TEXT_MAX - length, "/%u", bits);
	return out;
}

bool addr_is_v4(const union shunt_address *addr)
{
	return memcmp(addr->byte, v4_mapped, sizeof(v4_mapped)) == 0;
}

bool addr_is_unspecified(const union shunt_address *addr)
{
	static const uint8_t zero[16];

	if (addr_is_v4(addr))
		return memcmp(addr->byte + sizeof(v4_mapped), zero, 4) == 0;
	return memcmp(addr->byte, zero, sizeof(zero)) == 0;
}

bool addr_equal(const union shunt_address *a, const union shunt_address *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

int addr_compare(const union shunt_address *a, const union shunt_address *b)
{
	return memcmp(a, b, sizeof(*a));
}

static bool is_unicast4(const uint8_t byte[4])
{
	static const uint8_t broadcast[4] = {255, 255, 255, 255};

	return byte[0] != 0 && byte[0] != 127 && (byte[0] & 0xf0) != 0xe0 && memcmp(byte, broadcast, 4) != 0;
}

static bool is_unicast6(const uint8_t byte[16])
{
	static const uint8_t loopback[16] = {[15] = 1};

	if (byte[0] == 0xff || (byte[0] == 0xfe && (byte[1] & 0xc0) == 0x80))
		return false;
	return memcmp(byte, loopback, sizeof(loopback)) != 0;
}

bool addr_is_unicast(const union shunt_address *addr)
{
	if (addr_is_unspecified(addr))
		return false;
	return addr_is_v4(addr) ? is_unicast4(addr->byte + sizeof(v4_mapped)) : is_unicast6(addr->byte);
}
