/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A flow as words of a command line. */
#include <netinet/in.h>
#include <string.h>

#include "ctl.h"
#include "flow.h"

int flow_protocol(const char *text, bool icmp, uint8_t *out)
{
	static const struct {
		const char *name;
		uint8_t protocol;
	} protocols[] = {{"tcp", IPPROTO_TCP}, {"udp", IPPROTO_UDP}, {"icmp", IPPROTO_ICMP}};

	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		if (strcmp(text, protocols[i].name) != 0 || (protocols[i].protocol == IPPROTO_ICMP && !icmp))
			continue;
		*out = protocols[i].protocol;
		return 0;
	}
	return ctl_fail(CTL_USAGE, "Usage", "\"%s\" is no protocol here: give %s", text,
			icmp ? "tcp, udp or icmp" : "tcp or udp");
}

int flow_endpoint(uint8_t protocol, const char *text, union shunt_address *address, unsigned int *port)
{
	if (protocol == IPPROTO_ICMP) {
		if (!addr_parse(text, address))
			return 0;
		return ctl_fail(CTL_USAGE, "Usage",
				"\"%s\": for icmp give an address alone: 192.0.2.10 or 2001:db8::10", text);
	}
	if (!addr_port_parse(text, address, port) && *port)
		return 0;
	return ctl_fail(CTL_USAGE, "Usage",
			"\"%s\": give ADDRESS:PORT, an IPv6 address in brackets: 192.0.2.10:80, [2001:db8::10]:80",
			text);
}

int flow_families(const union shunt_address *source, const union shunt_address *destination, const char *const *value)
{
	if (addr_is_v4(source) == addr_is_v4(destination))
		return CTL_OK;
	return ctl_fail(CTL_USAGE, "Usage", "%s and %s are of two families: no packet goes from one to the other",
			value[1], value[2]);
}
