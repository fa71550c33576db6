/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <byteswap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pcap.h"

#define MAGIC_MICRO 0xa1b2c3d4u
#define MAGIC_NANO 0xa1b23c4du
#define MAGIC_NG 0x0a0d0d0au /* the same in either byte order */
#define LINK_ETHERNET 1u
#define LINK_MASK 0xffffu /* above it: FCS bits */

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snaplen, link;
};

struct packet_header {
	uint32_t seconds, fraction;
	uint32_t captured, length;
};

static uint32_t host(const struct pcap *pcap, uint32_t value)
{
	return pcap->swapped ? bswap_32(value) : value;
}

static int judge_header(struct pcap *pcap, const struct file_header *header, struct report *report)
{
	uint32_t link;

	if (header->magic == MAGIC_NG)
		return report_error(report, -EINVAL, "%s is a pcapng file: make a pcap of it (editcap -F pcap IN OUT)",
				    pcap->path);
	pcap->swapped = header->magic == bswap_32(MAGIC_MICRO) || header->magic == bswap_32(MAGIC_NANO);
	if (!pcap->swapped && header->magic != MAGIC_MICRO && header->magic != MAGIC_NANO)
		return report_error(report, -EINVAL, "%s is no pcap file: give one that tcpdump -w writes", pcap->path);
	link = host(pcap, header->link) & LINK_MASK;
	if (link != LINK_ETHERNET)
		return report_error(
			report, -EINVAL,
			"%s holds packets of link type %u, not Ethernet (1): capture on an Ethernet interface, "
			"not on \"any\"",
			pcap->path, link);
	return 0;
}

int pcap_open(const char *path, struct pcap *out, struct report *report)
{
	struct pcap pcap = {.path = path, .file = fopen(path, "rbe")};
	struct file_header header;
	size_t n;
	int error;

	if (!pcap.file)
		return report_error(report, -errno, "cannot open %s: %s", path, strerror(errno));
	errno = 0;
	n = fread(&header, sizeof(header), 1, pcap.file);
	if (n == 1)
		error = judge_header(&pcap, &header, report);
	else if (ferror(pcap.file))
		error = report_error(report, errno ? -errno : -EIO, "cannot read %s: %s", path, strerror(errno));
	else
		error = report_error(report, -EINVAL, "%s is no pcap file: it ends within its header", path);
	if (error) {
		pcap_close(&pcap);
		return error;
	}
	*out = pcap;
	return 0;
}

void pcap_close(struct pcap *pcap)
{
	fclose(pcap->file);
	pcap->file = NULL;
}

/* The lengths that a packet's header claims. */
static int judge_packet(const struct pcap *pcap, uint32_t captured, uint32_t length, struct report *report)
{
	if (captured > PCAP_FRAME_MAX || captured > length)
		return report_error(report, -EINVAL,
				    "%s: packet %u claims to be %u bytes, %u of them captured: the file is damaged",
				    pcap->path, pcap->index, length, captured);
	if (captured < length)
		return report_error(report, -EINVAL,
				    "%s: packet %u was captured only in part, %u of %u bytes: capture whole packets "
				    "(tcpdump -s 0)",
				    pcap->path, pcap->index, captured, length);
	return 0;
}

int pcap_next(struct pcap *pcap, uint8_t **frame, uint32_t *length, struct report *report)
{
	struct packet_header header;
	size_t n = fread(&header, 1, sizeof(header), pcap->file);
	uint32_t captured;
	uint8_t *bytes;
	int error;

	if (!n && !ferror(pcap->file))
		return -ENODATA;
	pcap->index++;
	if (n != sizeof(header))
		return report_error(report, -EINVAL, "%s ends within the header of packet %u", pcap->path, pcap->index);
	captured = host(pcap, header.captured);
	error = judge_packet(pcap, captured, host(pcap, header.length), report);
	if (error)
		return error;
	bytes = malloc(captured + 1);
	if (!bytes)
		return report_error(report, -ENOMEM, "out of memory");
	if (fread(bytes, 1, captured, pcap->file) != captured) {
		free(bytes);
		return report_error(report, -EINVAL, "%s ends within packet %u", pcap->path, pcap->index);
	}
	*frame = bytes;
	*length = captured;
	return 0;
}

int pcap_write(const char *path, const uint8_t *frame, uint32_t length, struct report *report)
{
	struct file_header header = {
		.magic = MAGIC_NANO, .major = 2, .minor = 4, .snaplen = PCAP_FRAME_MAX, .link = LINK_ETHERNET};
	struct packet_header packet = {.captured = length, .length = length};
	FILE *file = fopen(path, "wbe");
	struct timespec now;
	bool written;

	if (!file)
		return report_error(report, -errno, "cannot write %s: %s", path, strerror(errno));
	clock_gettime(CLOCK_REALTIME, &now);
	packet.seconds = (uint32_t)now.tv_sec;
	packet.fraction = (uint32_t)now.tv_nsec;
	written = fwrite(&header, sizeof(header), 1, file) == 1 && fwrite(&packet, sizeof(packet), 1, file) == 1 &&
		  fwrite(frame, 1, length, file) == length;
	if (fclose(file) || !written)
		return report_error(report, errno ? -errno : -EIO, "cannot write %s: %s", path, strerror(errno));
	return 0;
}
