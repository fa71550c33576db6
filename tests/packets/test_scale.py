# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Maps nearly full: each service is found, and nothing else is."""

import ipaddress
import random

import pytest

from cases import Service, ether, ip4, ip6, tcp, udp
from fleet import Backend, Fleet, Pool
from kernel import XDP_DROP, XDP_PASS, XDP_TX, Kernel

CAPACITIES = {"services": 20000, "addresses": 4000, "pools": 8, "backends": 8, "flows": 1000}


def network(rng):
    """4,000 addresses of both families with five ports each: 20,000 service entries, as many as fit."""
    services = []
    for number in range(4000):
        # Half of them in a row, half anywhere.
        if number % 2:
            address = str(ipaddress.ip_address("192.0.2.0") + number) if number % 4 == 1 else f"2001:db8::{number:x}"
        else:
            address = (str(ipaddress.IPv4Address(rng.randrange(0x0B000000, 0x7E000000))) if number % 4 else
                       str(ipaddress.IPv6Address(0x20010DB8 << 96 | rng.getrandbits(96))))
        first = rng.randrange(1, 65000)
        ports = [first, first + 1, first + 2, first + 4, first + 300]
        services.append(Service(f"s{number}", address, rng.choice(("tcp", "udp")), ports, "pool"))
    return Fleet([Pool("pool", [Backend("a", "10.1.0.11"), Backend("b", "fd00:1::11")])], services)


def frame(address, protocol, port):
    network_header = ip4(address) if ipaddress.ip_address(address).version == 4 else ip6(address)
    return bytes(ether() / network_header / (tcp if protocol == "tcp" else udp)(port, payload=b""))


@pytest.fixture(scope="module")
def full():
    fleet = network(random.Random(1))
    assert len({service.address for service in fleet.services.values()}) == 4000
    with Kernel(CAPACITIES) as kernel:
        kernel.load("lb")
        kernel.apply(fleet)
        yield kernel, fleet


def test_each_service_is_found(full):
    kernel, fleet = full
    frames = [frame(s.address, s.protocol, random.Random(s.name).choice(s.ports)) for s in fleet.services.values()]
    assert {action for action, _ in kernel.run(frames)} == {XDP_TX}
    stats = kernel.counters()
    assert all(stats["service", name][0] == 1 for name in fleet.services)


def test_nothing_else_is_found(full):
    kernel, fleet = full
    services = list(fleet.services.values())
    other_protocol = {"tcp": "udp", "udp": "tcp"}
    frames = [frame(s.address, s.protocol, s.ports[0] + 3) for s in services[:1000]]
    frames += [frame(s.address, other_protocol[s.protocol], s.ports[0]) for s in services[:1000]]
    assert {action for action, _ in kernel.run(frames)} == {XDP_DROP}


def test_other_addresses_are_left_alone(full):
    kernel, fleet = full
    known = {service.address for service in fleet.services.values()}
    rng = random.Random(2)
    addresses = [str(ipaddress.IPv4Address(rng.randrange(0x80000000, 0xE0000000))) for _ in range(1000)]
    addresses += [str(ipaddress.IPv6Address(0x20010DB8 << 96 | rng.getrandbits(12))) for _ in range(1000)]
    frames = [frame(address, "tcp", 80) for address in addresses if address not in known]
    assert len(frames) > 1000
    for before, (action, after) in zip(frames, kernel.run(frames)):
        assert (action, after) == (XDP_PASS, before)
