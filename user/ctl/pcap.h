/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Classic capture files (draft-ietf-opsawg-pcap) of Ethernet frames: either byte order, micro- or nanoseconds. */
#ifndef SHUNT_CTL_PCAP_H
#define SHUNT_CTL_PCAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report.h"

#define PCAP_FRAME_MAX 262144u /* the most that tcpdump captures of a packet */

struct pcap {
	FILE *file;
	const char *path; /* borrowed */
	bool swapped;
	unsigned int index; /* of the packet read last, from 1 */
};

/* 0, and the caller closes *out; -errno, reported with the remedy. */
int pcap_open(const char *path, struct pcap *out, struct report *report);
void pcap_close(struct pcap *pcap);

/* The next packet: 0 with *frame malloc'd; -ENODATA, not reported, at the end; -errno, reported. */
int pcap_next(struct pcap *pcap, uint8_t **frame, uint32_t *length, struct report *report);

/* A file with this one packet, captured now; what was there is overwritten. */
int pcap_write(const char *path, const uint8_t *frame, uint32_t length, struct report *report);

#endif
