/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What encapsulation puts in front, and where it comes from. */
#include <string.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "addr.h"
#include "model.h"

#define ADDRESS_BITS 128u /* of union shunt_address */

uint32_t model_overhead(const struct model_pool *pool, bool v4)
{
	uint32_t outer = v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);

	if (pool->encapsulation == MODEL_L2)
		return 0;
	if (pool->encapsulation == MODEL_GUE)
		return outer + sizeof(struct shunt_gue_udp) + SHUNT_GUE_EXTRA_MAX;
	return outer;
}

static union shunt_address source_address(const struct model_source *source)
{
	union shunt_address address;

	memcpy(address.byte, source->prefix.address, sizeof(address.byte));
	return address;
}

const char *model_source_text(const struct model_source *source, char out[static ADDR_TEXT_MAX])
{
	union shunt_address address = source_address(source);

	return model_source_bits(source) ? prefix_format(&source->prefix, out) : addr_format(&address, out);
}

int model_source_parse(const char *text, struct model_source *out)
{
	int ret = prefix_parse(text, &out->prefix);

	if (!ret)
		out->given = true;
	return ret;
}

bool model_source_is_v4(const struct model_source *source)
{
	union shunt_address address = source_address(source);

	return addr_is_v4(&address);
}

unsigned int model_source_bits(const struct model_source *source)
{
	return ADDRESS_BITS - source->prefix.length;
}
