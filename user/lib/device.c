/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "device.h"
#include "kernel.h"

/*
 * A page holds the XDP headroom (256 bytes), the frame with two VLAN tags (22 bytes more than its MTU) and the
 * kernel's struct skb_shared_info (320 bytes).
 */
#define SINGLE_BUFFER_MTU (4096 - 256 - 22 - 320)

static int ethtool(int fd, const char *name, void *command)
{
	struct ifreq request = {.ifr_data = command};

	memcpy(request.ifr_name, name, strnlen(name, IF_NAMESIZE - 1));
	return ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
}

static uint32_t count_features(int fd, const char *name)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} set = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_FEATURES}};

	return ethtool(fd, name, &set) || !set.info.sset_mask ? 0 : set.count;
}

static void take_feature(struct device *device, const char *feature)
{
	if (!strcmp(feature, "rx-lro"))
		device->lro = true;
	else if (!strcmp(feature, "rx-gro-hw"))
		device->gro_hw = true;
	else if (!strcmp(feature, "rx-vlan-hw-parse"))
		device->rx_vlan = true;
}

/* A device that does not tell its features has none that are on. */
static void read_features(int fd, struct device *device)
{
	uint32_t count = count_features(fd, device->name), blocks = (count + 31) / 32;
	struct ethtool_gstrings *names = calloc(1, sizeof(*names) + (size_t)count * ETH_GSTRING_LEN);
	struct ethtool_gfeatures *features = calloc(1, sizeof(*features) + blocks * sizeof(features->features[0]));

	if (count && names && features) {
		*names = (struct ethtool_gstrings){ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count};
		*features = (struct ethtool_gfeatures){ETHTOOL_GFEATURES, blocks};
		if (!ethtool(fd, device->name, names) && !ethtool(fd, device->name, features)) {
			for (uint32_t i = 0; i < count; i++)
				if (features->features[i / 32].active >> i % 32 & 1)
					take_feature(device, (const char *)names->data + i * ETH_GSTRING_LEN);
		}
	}
	free(names);
	free(features);
}

static void read_driver(int fd, struct device *device)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};

	if (!ethtool(fd, device->name, &info)) {
		snprintf(device->driver, sizeof(device->driver), "%s", info.driver);
		/* what tun and bridge put there is no address */
		if (strcmp(info.bus_info, "tun") != 0 && strcmp(info.bus_info, "tap") != 0 &&
		    strcmp(info.bus_info, "N/A") != 0)
			snprintf(device->bus, sizeof(device->bus), "%s", info.bus_info);
	}
	if (!ethtool(fd, device->name, &channels)) {
		device->channels = channels.combined_count + channels.rx_count;
		device->channels_max = channels.max_combined + channels.max_rx;
	}
}

static int read_basics(int fd, const char *name, struct device *device)
{
	struct ifreq request = {};

	if (strlen(name) >= IF_NAMESIZE)
		return -ENODEV;
	strcpy(device->name, name);
	strcpy(request.ifr_name, name);
	if (ioctl(fd, SIOCGIFINDEX, &request))
		return -errno;
	device->ifindex = (uint32_t)request.ifr_ifindex;
	if (ioctl(fd, SIOCGIFMTU, &request))
		return -errno;
	device->mtu = (uint32_t)request.ifr_mtu;
	if (ioctl(fd, SIOCGIFHWADDR, &request))
		return -errno;
	device->type = request.ifr_hwaddr.sa_family;
	return 0;
}

int device_read(const char *name, struct device *out, struct report *report)
{
	struct device device = {};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return kernel_error(report, -errno, "cannot open a socket");
	error = read_basics(fd, name, &device);
	if (!error) {
		read_driver(fd, &device);
		read_features(fd, &device);
	}
	close(fd);
	if (error == -ENODEV)
		return report_error(report, error,
				    "%s: no such interface in this network namespace (`ip link` lists them)", name);
	if (error)
		return kernel_error(report, error, "%s: cannot read the interface's properties", name);
	*out = device;
	return 0;
}

int device_check(const struct device *device, struct report *report)
{
	if (device->type == ARPHRD_ETHER)
		return 0;
	if (device->type == ARPHRD_LOOPBACK)
		return report_error(report, -EINVAL, "%s: a loopback device; attach to a network interface",
				    device->name);
	return report_error(
		report, -EINVAL,
		"%s: not an Ethernet device (link type %u), so its frames have no Ethernet header; attach to "
		"the Ethernet interface beneath it",
		device->name, device->type);
}

bool device_wants_frags(const struct device *device)
{
	return device->mtu > SINGLE_BUFFER_MTU;
}

bool device_hides_tags(const struct device *device)
{
	return device->rx_vlan && *device->bus;
}

char *device_explain(const struct device *device, int error, uint32_t n_cpus)
{
	const char *name = device->name;
	size_t size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	long causes;

	if (!out)
		return NULL;
	fprintf(out, "the driver%s%s refused native mode (%s)", *device->driver ? " " : "", device->driver,
		strerror(-error));
	causes = ftell(out);
	if (device->lro)
		fprintf(out, "; LRO is on: `ethtool -K %s lro off`", name);
	if (device->gro_hw)
		fprintf(out, "; hardware GRO is on: `ethtool -K %s rx-gro-hw off`", name);
	if (device_wants_frags(device) || (error == -ERANGE && device->mtu > 1500))
		fprintf(out,
			"; MTU %u does not fit into one buffer and the driver does not take fragments: `ip link set %s "
			"mtu "
			"%u`",
			device->mtu, name, device->mtu > SINGLE_BUFFER_MTU ? SINGLE_BUFFER_MTU : 1500);
	else if (error == -ERANGE)
		fprintf(out,
			"; the MTU here or at the other end of a veth pair is too large: `ip link set %s mtu 1500`",
			name);
	/* Drivers with a TX queue of its own for each CPU that runs XDP take them from the same pool. */
	if (device->channels && device->channels + n_cpus > device->channels_max && device->channels > 1)
		fprintf(out, "; no queues are left for XDP (%u of %u in use, %u CPUs): `ethtool -L %s combined %u`",
			device->channels, device->channels_max, n_cpus, name, device->channels_max / 2 ?: 1);
	if (error != -ERANGE)
		fprintf(out, "%s `--mode generic` works on every interface, several times slower",
			ftell(out) == causes ? "; it may have no native XDP:" : "; if nothing helps,");
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
