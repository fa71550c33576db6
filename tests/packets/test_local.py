# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""unknown-port: pass, on a host that forwards and has a route for the address: passed only while the address is its own."""

from contextlib import contextmanager

import pytest
from scapy.packet import Raw

from cases import CLIENT, LOCAL, LOCAL6, NETWORK, Flow, ether, ip4, ip6, tcp, udp
from cases_icmp import ping4, ping6
from kernel import XDP_DROP, XDP_PASS, XDP_TX, Kernel, difference, run

VIA, VIA6 = "10.9.0.2", "fd00:9::2"
SETUP = f"""
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
ip link set lo up
ip link set in up
ip link set in-peer up
ip address add 10.9.0.1/24 dev in
ip address add fd00:9::1/64 dev in nodad
ip route add default via {VIA}
ip route add default via {VIA6}
"""
PACKETS = {
    "TCP to an unknown port": (ether() / ip4(LOCAL) / tcp(22), ether() / ip6(LOCAL6) / tcp(22)),
    "UDP": (ether() / ip4(LOCAL) / udp(80), ether() / ip6(LOCAL6) / udp(80)),
    "a ping": (ether() / ping4(dst=LOCAL), ether() / ping6(dst=LOCAL6)),
    "another protocol": (ether() / ip4(LOCAL, proto=132) / Raw(bytes(64)), ether() / ip6(LOCAL6, nh=132) / Raw(bytes(64))),
    "a later fragment": (ether() / ip4(LOCAL, flags=0, frag=9, proto=17) / Raw(bytes(64)),
                         ether() / ip6(LOCAL6, nh=44) / Raw(b"\x11\0\0\x48\0\0\0\1" + bytes(64))),
}


@pytest.fixture(scope="module")
def kernel():
    with Kernel() as kernel:
        inside(kernel, SETUP)
        kernel.load("lb")
        kernel.apply(NETWORK)
        yield kernel


def inside(kernel, script):
    run("nsenter", f"--net=/run/netns/{kernel.name}", "--", "sh", "-eu", "-c", script)


def sent(kernel, frame):
    """(action, reason), and the frame as it was."""
    before = kernel.counters()
    ((action, out),) = kernel.run([frame])
    assert out == bytes(frame)
    ((kind, reason),) = difference(before, kernel.counters())
    assert kind == "reason"
    return action, reason


@contextmanager
def local(kernel, address, length):
    """The address on lo.  The kernel puts an IPv6 address's own route in later."""
    inside(kernel, f"ip address add {address}/{length} dev lo nodad\n"
                   f"for i in $(seq 200); do ip route get {address} | grep -q '^local' && exit; sleep 0.02; done; exit 1\n")
    try:
        yield
    finally:
        inside(kernel, f"ip address del {address}/{length} dev lo\n")


@pytest.mark.parametrize("family", (0, 1), ids=("IPv4", "IPv6"))
@pytest.mark.parametrize("name", PACKETS)
def test_passed_while_the_address_is_the_hosts(kernel, name, family):
    frame = PACKETS[name][family]
    assert sent(kernel, frame) == (XDP_DROP, "drop_unknown_port")
    with local(kernel, *((LOCAL, 32), (LOCAL6, 128))[family]):
        assert sent(kernel, frame) == (XDP_PASS, "pass_unknown_port")
    assert sent(kernel, frame) == (XDP_DROP, "drop_unknown_port")


@pytest.mark.parametrize("family", (0, 1), ids=("IPv4", "IPv6"))
def test_passed_where_the_host_does_not_forward(kernel, family):
    """Its stack drops the packet: nothing loops, and shunt takes nothing from the host."""
    frame = PACKETS["TCP to an unknown port"][family]
    switch = ("net/ipv4/conf/in/forwarding", "net/ipv6/conf/in/forwarding")[family]
    inside(kernel, f"echo 0 >/proc/sys/{switch}\n")
    try:
        assert sent(kernel, frame) == (XDP_PASS, "pass_unknown_port")
    finally:
        inside(kernel, f"echo 1 >/proc/sys/{switch}\n")
    assert sent(kernel, frame) == (XDP_DROP, "drop_unknown_port")


def test_passed_where_there_is_no_route(kernel):
    inside(kernel, "ip route del default\n")
    try:
        assert sent(kernel, PACKETS["UDP"][0]) == (XDP_PASS, "pass_unknown_port")
    finally:
        inside(kernel, f"ip route add default via {VIA}\n")


def test_the_service_of_the_address_needs_no_address(kernel):
    ((action, frame),) = kernel.run([ether() / ip4(LOCAL) / tcp(80)])
    assert (action, frame) == (XDP_TX, NETWORK.forward(bytes(ether() / ip4(LOCAL) / tcp(80)), Flow(CLIENT, 40000, LOCAL, 80, 6),
                                                       "local").frame)
