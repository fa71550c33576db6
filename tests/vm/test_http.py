# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HTTP by virtio-net with native XDP to a backend whose kernel unwraps: its tunnel devices judge our encapsulation.

The host's end of both links is one switch, which the client is on.  In the machine the first link is the load
balancer's, in a namespace of its own, and the second the backend's.
"""

import json
import os
import subprocess
import time

import pytest
from machine import BUILD, TOP, argv_in

REQUESTS = 50  # of each of the four pairs of families
VIA = os.environ["SHUNT_TEST_VIA"].split()
NETNS = os.environ["SHUNT_VM_NETNS"]
CLIENT, BALANCER = ("10.1.0.1", "fd00:1::1"), ("10.1.0.2", "fd00:1::2")
BACKENDS = {80: "10.1.0.11", 81: "fd00:1::11"}  # by the port of the service
SERVICES = {4: "192.0.2.10", 6: "2001:db8::10"}
# The device that unwraps, by family outside and inside.
DEVICES = {(4, 4): "tunl0", (4, 6): "sit0", (6, 4): "any6", (6, 6): "any6"}
INSTANCE = "vm"

SWITCH = f"""
ip address replace {CLIENT[0]}/16 dev switch
ip address replace {CLIENT[1]}/64 dev switch
ip route replace 192.0.2.0/24 via {BALANCER[0]} mtu 1500
ip route replace 2001:db8::/64 via {BALANCER[1]} mtu 1500
"""

MACHINE = f"""
ip netns add lb
ip netns add backend
ip link set eth1 netns lb
ip link set eth2 netns backend
ip -n lb link set lo up
ip -n lb address add {BALANCER[0]}/16 dev eth1
ip -n lb address add {BALANCER[1]}/64 dev eth1 nodad
ip -n lb link set eth1 up
ip -n backend link set lo up
ip -n backend address add {BACKENDS[80]}/16 dev eth2
ip -n backend address add {BACKENDS[81]}/64 dev eth2 nodad
ip -n backend address add {SERVICES[4]}/32 dev lo
ip -n backend address add {SERVICES[6]}/128 dev lo nodad
ip -n backend link add any6 type ip6tnl mode any local {BACKENDS[81]}
for device in eth2 tunl0 sit0 any6; do ip -n backend link set $device up; done
nsenter --net=/run/netns/backend -- sh -euc '
	for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$file; done
	echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
	mkdir -p /www && echo backend >/www/index.html
	httpd -p 80 -h /www
	httpd -p 81 -h /www'
"""

DOCUMENT = {
    "version": 1, "hash-key": "00112233445566778899aabbccddeeff",
    "pools": [{"name": f"pool{port}", "table": {"algorithm": "maglev", "size": 4099}, "encapsulation": {"type": "ipip"},
               "backends": [{"name": "b", "address": address}]} for port, address in BACKENDS.items()],
    "services": [{"name": f"www{family}-{port}", "address": address, "protocol": "tcp", "ports": [port],
                  "pool": f"pool{port}"} for family, address in SERVICES.items() for port in BACKENDS],
}


def machine(*argv, check=True):
    done = subprocess.run([*VIA, *map(str, argv)], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)
    if check and done.returncode:
        pytest.fail(f"in the machine, {argv}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def balancer(*argv, check=True):
    return machine("nsenter", "--net=/run/netns/lb", "--", *argv, check=check)


def ctl(*argv, check=True):
    return balancer(BUILD / "shuntctl", "--instance", INSTANCE, "-j", *argv, check=check)


def slots():
    """Of every backend; None while the daemon does not answer."""
    try:
        return [row["slots"] for row in json.loads(ctl("backend", "list", check=False))["backends"]]
    except (ValueError, KeyError):
        return None


@pytest.fixture(scope="module")
def attached():
    """The instance with the document in force; what the loader said when it attached."""
    subprocess.run(argv_in(NETNS, "sh", "-euc", SWITCH), check=True, capture_output=True, timeout=20)
    machine("sh", "-euc", MACHINE)
    machine("sh", "-c", f"cat >/run/shunt.yaml <<'EOT'\n{json.dumps(DOCUMENT)}\nEOT")
    said = balancer("env", f"SHUNT_OBJECT_DIR={BUILD}", BUILD / "shunt-loader", "attach", "eth1", "--instance", INSTANCE,
                    "--mode", "native")
    balancer("sh", "-c", f"{BUILD}/shuntd -c /run/shunt.yaml --instance {INSTANCE} --state-dir /run/state "
             "</dev/null >/run/shuntd.log 2>&1 &")
    until = time.monotonic() + 60
    while (have := slots()) != [4099, 4099]:
        assert time.monotonic() < until, f"{have}: {machine('cat', '/run/shuntd.log')}"
        time.sleep(0.2)
    return said


def test_native_xdp_on_virtio_net(attached):
    assert "native" in attached


@pytest.mark.parametrize("outer,inner", DEVICES, ids=lambda family: f"ipv{family}")
def test_requests_are_answered_through_the_kernels_tunnel_device(attached, outer, inner):
    def received():
        link = json.loads(machine("ip", "-n", "backend", "-s", "-j", "link", "show", DEVICES[outer, inner]))[0]
        return link["stats64"]["rx"]

    before = received()
    port = 80 if outer == 4 else 81
    done = subprocess.run(argv_in(NETNS, "/usr/bin/python3", TOP / "tests/lib/http_load.py", SERVICES[inner], "--port", port,
                                  "--requests", REQUESTS, "--concurrency", 8, "--timeout", 30),
                          check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200)
    results = json.loads(done.stdout)["requests"]
    assert [(answer, error) for _, answer, error, *_ in results] == [("backend", None)] * REQUESTS
    after = received()
    # A SYN, an ACK, the request, a FIN at least.
    assert after["packets"] - before["packets"] >= 4 * REQUESTS
    assert after["errors"] == before["errors"] == 0


def test_every_packet_for_a_service_was_sent_on(attached):
    counters = {row["name"]: row["packets"] for row in json.loads(ctl("counters"))["counters"] if row["packets"]}
    assert counters["forward_tx"] >= 4 * 4 * REQUESTS
    assert not [name for name in counters if name.startswith(("drop_", "bug_"))], counters
