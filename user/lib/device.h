/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What matters about a network interface before an XDP program is attached to it. */
#ifndef SHUNT_DEVICE_H
#define SHUNT_DEVICE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "report.h"

struct device {
	char name[IF_NAMESIZE];
	uint32_t ifindex;
	uint32_t mtu;		   /* bytes, without the Ethernet header */
	uint16_t type;		   /* ARPHRD_* */
	char driver[32];	   /* "" if the driver does not say */
	char bus[32];		   /* address of the hardware, "" for devices made of software */
	bool lro, gro_hw, rx_vlan; /* offloads that are on */
	uint32_t channels;	   /* RX and TX queue pairs in use; 0: the driver does not say */
	uint32_t channels_max;
};

/* The interface's facts in this network namespace.  -ENODEV (no such interface) or another -errno, reported. */
int device_read(const char *name, struct device *out, struct report *report);

/* ---- pure from here on ---- */

/* 0, or -EINVAL and an error: XDP sees frames with an Ethernet header only on Ethernet devices. */
int device_check(const struct device *device, struct report *report);

/* Frames of this MTU do not fit into one buffer of a page: only a program that takes fragments can be attached. */
bool device_wants_frags(const struct device *device);

/*
 * The device takes VLAN tags out of frames before XDP sees them.  Real and virtual NICs with the offload on do; devices
 * made of software (veth, bridge, tap) list the feature too, but leave alone what was sent with its tag in the frame,
 * so only devices with a bus address count.
 */
bool device_hides_tags(const struct device *device);

/*
 * What the kernel's refusal to attach natively may come from, each cause with its remedy; malloc'd, NULL if out of
 * memory.  n_cpus: some drivers want a TX queue for each.
 */
char *device_explain(const struct device *device, int error, uint32_t n_cpus);

#endif
