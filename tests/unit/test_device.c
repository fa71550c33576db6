/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Judging an interface: with facts made up, since no machine has every NIC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <net/if_arp.h>

#include "device.h"

static const struct device nic = {
	.name = "eth0", .ifindex = 2, .mtu = 1500, .type = ARPHRD_ETHER, .driver = "virtio_net", .bus = "0000:00:03.0"};

static void frags_by_mtu(void **state)
{
	struct device device = nic;

	(void)state;
	assert_false(device_wants_frags(&device));
	device.mtu = 3498;
	assert_false(device_wants_frags(&device));
	device.mtu = 3499;
	assert_true(device_wants_frags(&device));
	device.mtu = 9000;
	assert_true(device_wants_frags(&device));
}

static void only_real_devices_hide_tags(void **state)
{
	struct device device = nic;

	(void)state;
	assert_false(device_hides_tags(&device));
	device.rx_vlan = true;
	assert_true(device_hides_tags(&device));
	*device.bus = '\0';
	assert_false(device_hides_tags(&device));
}

static void only_ethernet(void **state)
{
	struct device device = nic;
	struct report report = {};

	(void)state;
	assert_int_equal(device_check(&device, &report), 0);
	device.type = ARPHRD_NONE;
	assert_int_equal(device_check(&device, &report), -EINVAL);
	device.type = ARPHRD_LOOPBACK;
	assert_int_equal(device_check(&device, &report), -EINVAL);
	assert_int_equal(report.errors, 2);
	report_free(&report);
}

/* with: parts that the explanation has; without: one that it has not. */
static void explains(const struct device *device, int error, const char *with, const char *without)
{
	char *text = device_explain(device, error, 4);

	assert_non_null(text);
	if (with && !strstr(text, with))
		fail_msg("no '%s' in: %s", with, text);
	if (without && strstr(text, without))
		fail_msg("'%s' in: %s", without, text);
	free(text);
}

static void each_cause_has_its_command(void **state)
{
	struct device device = nic;

	(void)state;
	explains(&device, -EOPNOTSUPP, "--mode generic", "lro");
	explains(&device, -EOPNOTSUPP, "virtio_net refused native mode (Operation not supported)", "mtu");
	explains(&device, -EOPNOTSUPP, "it may have no native XDP", "if nothing helps");
	device.lro = true;
	explains(&device, -EOPNOTSUPP, "if nothing helps", "no native XDP");
	explains(&device, -EOPNOTSUPP, "`ethtool -K eth0 lro off`", "rx-gro-hw");
	device.gro_hw = true;
	explains(&device, -EOPNOTSUPP, "`ethtool -K eth0 rx-gro-hw off`", NULL);
	device.mtu = 9000;
	explains(&device, -EINVAL, "`ip link set eth0 mtu 3498`", NULL);
	device.mtu = 2000;
	explains(&device, -ERANGE, "`ip link set eth0 mtu 1500`", "--mode generic");
	device.mtu = 1500;
	explains(&device, -ERANGE, "the other end of a veth pair", "does not fit");
}

static void queues(void **state)
{
	struct device device = nic;

	(void)state;
	device.channels = 8;
	device.channels_max = 8;
	explains(&device, -EINVAL, "(8 of 8 in use, 4 CPUs): `ethtool -L eth0 combined 4`", NULL);
	device.channels = 4;
	explains(&device, -EINVAL, NULL, "ethtool -L");
	device.channels = 0;
	device.channels_max = 0;
	explains(&device, -EINVAL, NULL, "ethtool -L");
}

static void unknown_interfaces(void **state)
{
	struct report report = {};
	struct device device = {.mtu = 7};

	(void)state;
	assert_int_equal(device_read("no-such-if", &device, &report), -ENODEV);
	assert_int_equal(device_read("a-name-longer-than-ifnamsiz", &device, &report), -ENODEV);
	assert_int_equal(report.errors, 2);
	assert_int_equal(device.mtu, 7);
	assert_int_equal(device_read("lo", &device, &report), 0);
	assert_int_equal(device.type, ARPHRD_LOOPBACK);
	report_free(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frags_by_mtu),	 cmocka_unit_test(only_real_devices_hide_tags),
		cmocka_unit_test(only_ethernet), cmocka_unit_test(each_cause_has_its_command),
		cmocka_unit_test(queues),	 cmocka_unit_test(unknown_interfaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
