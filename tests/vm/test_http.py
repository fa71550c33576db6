# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HTTP by virtio-net with native XDP to a backend whose kernel unwraps: its tunnel devices judge our encapsulation.

The host's ends of the links are one switch, which the client is on.  In the machine the first link is the load
balancer's, in a namespace of its own, the second the backend's, and the third a second client's, all of whose frames
have the tag of a VLAN (not every host's kernel has such devices, the machine's has).
"""

import json
import os
import subprocess
import time

import pytest
from machine import BUILD, TOP, argv_in

REQUESTS = 25  # of each way: an encapsulation and its two families
VIA = os.environ["SHUNT_TEST_VIA"].split()
NETNS = os.environ["SHUNT_VM_NETNS"]
CLIENT, BALANCER = ("10.1.0.1", "fd00:1::1"), ("10.1.0.2", "fd00:1::2")
VLAN = 7
SERVICES = {4: "192.0.2.10", 6: "2001:db8::10"}
# By encapsulation and family outside: the port of the services and the address of the backend. The pool that nobody but
# health checks speaks to has addresses of its own, so that the devices of the others count requests only.
WAYS = {("ipip", 4): (80, "10.1.0.11"), ("ipip", 6): (81, "fd00:1::11"),
        ("gue", 4): (82, "10.1.0.12"), ("gue", 6): (83, "fd00:1::12")}
CHECKED_PORT, CHECKED = 84, {4: "10.1.0.13", 6: "fd00:1::13"}
# The kind of device that unwraps, by family outside and inside; its name ends as the backend's address does.
DEVICES = {(4, 4): "ipip", (4, 6): "sit", (6, 4): "any", (6, 6): "any"}
INSTANCE = "vm"

SWITCH = f"""
ip address replace {CLIENT[0]}/16 dev switch
ip address replace {CLIENT[1]}/64 dev switch
ip route replace {SERVICES[4]} via {BALANCER[0]} mtu 1500
ip route replace {SERVICES[6]} via {BALANCER[1]} mtu 1500
"""

MACHINE = f"""
number=1
for host in lb backend client; do
	ip netns add $host
	ip -n $host link set lo up
	ip link set eth$number netns $host
	ip -n $host link set eth$number up
	ip -n $host link add link eth$number name tagged type vlan id {VLAN}
	ip -n $host address add 10.7.0.$number/24 dev tagged
	ip -n $host address add fd00:7::$number/64 dev tagged nodad
	ip -n $host link set tagged up
	number=$((number + 1))
done
ip -n client route add {SERVICES[4]} via 10.7.0.1 mtu 1500
ip -n client route add {SERVICES[6]} via fd00:7::1 mtu 1500
ip -n lb address add {BALANCER[0]}/16 dev eth1
ip -n lb address add {BALANCER[1]}/64 dev eth1 nodad
# Checks of a backend of one family by a service of the other take their source from the way to the service.
ip -n lb route add default via {CLIENT[0]}
ip -n lb route add default via {CLIENT[1]}
ip -n backend address add {SERVICES[4]}/32 dev lo
ip -n backend address add {SERVICES[6]}/128 dev lo nodad
ip -n backend fou add port 6080 gue
ip -n backend -6 fou add port 6080 gue
for n in 11 12 13; do
	gue="encap gue encap-sport auto encap-dport 6080"
	[ $n = 12 ] || gue=
	ip -n backend address add 10.1.0.$n/16 dev eth2
	ip -n backend address add fd00:1::$n/64 dev eth2 nodad
	ip -n backend link add ipip$n type ipip local 10.1.0.$n $gue
	ip -n backend link add sit$n type sit local 10.1.0.$n $gue
	ip -n backend link add any$n type ip6tnl mode any local fd00:1::$n $gue
	for device in ipip$n sit$n any$n; do ip -n backend link set $device up; done
done
nsenter --net=/run/netns/backend -- sh -euc '
	for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$file; done
	echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
	mkdir -p /www && echo backend >/www/index.html
	for port in 80 81 82 83 84; do httpd -p $port -h /www; done'
"""

TABLE = {"algorithm": "maglev", "size": 1031}
DOCUMENT = {
    "version": 1, "hash-key": "00112233445566778899aabbccddeeff",
    "pools": [
        *({"name": f"pool{port}", "table": TABLE, "encapsulation": {"type": encapsulation},
           "backends": [{"name": "b", "address": address}]} for (encapsulation, _), (port, address) in WAYS.items()),
        {"name": "checked", "table": TABLE, "encapsulation": {"type": "ipip"},
         "health": {"type": "http", "interval": "1s", "timeout": "1s", "rise": 1},
         "backends": [{"name": f"b{family}", "address": address} for family, address in CHECKED.items()]}],
    "services": [
        *({"name": f"www{family}-{port}", "address": address, "protocol": "tcp", "ports": [port],
           "pool": f"pool{port}"} for family, address in SERVICES.items() for port, _ in WAYS.values()),
        {"name": "checked", "address": SERVICES[4], "protocol": "tcp", "ports": [CHECKED_PORT], "pool": "checked"}],
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


def explain(*words):
    said = json.loads(balancer("env", f"SHUNT_OBJECT_DIR={BUILD}", BUILD / "shuntctl", "--instance", INSTANCE, "-j",
                               "explain", *words))
    layers = [layer["layer"] for layer in said["output"]["layers"]]
    return said["verdict"]["reason"], said["backend"]["encapsulation"], layers


def backends():
    """The rows by pool; none while the daemon does not answer."""
    try:
        rows = json.loads(ctl("backend", "list", check=False))["backends"]
        return {f"{row['pool']}/{row['name']}": row for row in rows}
    except (ValueError, KeyError):
        return {}


def serving():
    rows = backends()
    return len(rows) == len(WAYS) + len(CHECKED) and all(
        row["slots"] and (row["pool"] != "checked" or row["health"] == "up") for row in rows.values())


@pytest.fixture(scope="module")
def attached():
    """The instance with the document in force; what the loader said when it attached."""
    subprocess.run(argv_in(NETNS, "sh", "-euc", SWITCH), check=True, capture_output=True, timeout=20)
    machine("sh", "-euc", MACHINE)
    machine("sh", "-c", f"cat >/run/shunt.yaml <<'EOT'\n{json.dumps(DOCUMENT)}\nEOT")
    said = balancer("env", f"SHUNT_OBJECT_DIR={BUILD}", BUILD / "shunt-loader", "attach", "eth1", "--instance", INSTANCE,
                    "--mode", "native")
    balancer("sh", "-c", f"SHUNT_OBJECT_DIR={BUILD} {BUILD}/shuntd -c /run/shunt.yaml --instance {INSTANCE} "
             "--state-dir /run/state </dev/null >/run/shuntd.log 2>&1 &")
    until = time.monotonic() + 60
    while not serving():
        assert time.monotonic() < until, f"{backends()}: {machine('cat', '/run/shuntd.log')}"
        time.sleep(0.2)
    return said


def received(device):
    """Packets that the device of the backend took, and errors."""
    stats = json.loads(machine("ip", "-n", "backend", "-s", "-j", "link", "show", device))[0]["stats64"]["rx"]
    return stats["packets"], stats["errors"]


def request(address, port):
    """All requests of one way, answered."""
    done = subprocess.run(argv_in(NETNS, "/usr/bin/python3", TOP / "tests/lib/http_load.py", address, "--port", port,
                                  "--requests", REQUESTS, "--concurrency", 8, "--timeout", 30),
                          check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200)
    results = json.loads(done.stdout)["requests"]
    assert [(answer, error) for _, answer, error, *_ in results] == [("backend", None)] * REQUESTS


def test_native_xdp_on_virtio_net(attached):
    assert "native" in attached


@pytest.mark.parametrize("inner", SERVICES, ids=lambda family: f"ipv{family}")
@pytest.mark.parametrize("encapsulation,outer", WAYS, ids=lambda word: str(word))
def test_requests_are_answered_through_the_kernels_tunnel_device(attached, encapsulation, outer, inner):
    port, address = WAYS[encapsulation, outer]
    device = DEVICES[outer, inner] + address[-2:]
    before, _ = received(device)
    request(SERVICES[inner], port)
    after, errors = received(device)
    # A SYN, an ACK, the request, a FIN at least.
    assert after - before >= 4 * REQUESTS
    assert errors == 0


@pytest.mark.parametrize("inner", SERVICES, ids=lambda family: f"ipv{family}")
@pytest.mark.parametrize("encapsulation,outer", [("ipip", 4), ("gue", 6)], ids=lambda word: str(word))
def test_requests_from_a_vlan_are_answered_on_it(attached, encapsulation, outer, inner):
    port, address = WAYS[encapsulation, outer]
    devices = DEVICES[outer, inner] + address[-2:], "tagged"
    before = [received(device)[0] for device in devices]
    # The third link has no untagged address: what this client gets back came back by the VLAN.
    answers = machine("nsenter", "--net=/run/netns/client", "--", "bash", "-euc", f"""
        for i in {{1..{REQUESTS}}}; do
            exec 3<>/dev/tcp/{SERVICES[inner]}/{port}
            printf 'GET / HTTP/1.1\\r\\nHost: www\\r\\nConnection: close\\r\\n\\r\\n' >&3
            cat <&3
        done""")
    assert (answers.count("HTTP/1.1 200 "), answers.count("\n\nbackend\n")) == (REQUESTS, REQUESTS)
    # And what the backend's tunnel device unwrapped came tagged.
    after = [received(device)[0] for device in devices]
    assert all(now - then >= 4 * REQUESTS for now, then in zip(after, before, strict=True)), (before, after)


def datagrams():
    """By family what the backend's kernel took in UDP, and what it refused, for any reason and for its checksum."""
    def lines(pattern, file):
        said = machine("nsenter", "--net=/run/netns/backend", "--", "grep", pattern, f"/proc/net/{file}")
        return [line.split() for line in said.splitlines()]

    names, values = lines("^Udp:", "snmp")
    counts = {4: dict(zip(names, values, strict=True)),
              6: {name.removeprefix("Udp6"): value for name, value in lines("^Udp6", "snmp6")}}
    return {family: [int(of[name]) for name in ("InDatagrams", "NoPorts", "InErrors", "InCsumErrors")]
            for family, of in counts.items()}


def test_the_kernel_unwraps_every_gue_datagram_and_refuses_none(attached):
    """Its fou module hands on what the tunnel devices count; over IPv6 the outer checksum was verified before."""
    unwrapped = {4: received("ipip12")[0] + received("sit12")[0], 6: received("any12")[0]}
    assert all(count >= 4 * 2 * REQUESTS for count in unwrapped.values())
    assert datagrams() == {family: [count, 0, 0, 0] for family, count in unwrapped.items()}


def test_health_checks_reach_a_backend_of_either_family(attached):
    rows = backends()
    for family, address in CHECKED.items():
        assert rows[f"checked/b{family}"]["health"] == "up"
        # Of each check that passed: a SYN, an ACK, the request at least.
        packets, errors = received(DEVICES[family, 4] + address[-2:])
        assert packets >= 3 * rows[f"checked/b{family}"]["health_passed"] > 0
        assert errors == 0


@pytest.mark.parametrize("encapsulation,outer", [("ipip", 6), ("gue", 4)], ids=lambda word: str(word))
def test_explain_runs_on_this_kernel(attached, encapsulation, outer):
    reason, kind, layers = explain("tcp", f"{CLIENT[0]}:40000", f"{SERVICES[4]}:{WAYS[encapsulation, outer][0]}")
    assert (reason, kind) == ("forward_tx", encapsulation)
    assert layers == ["ethernet", f"ipv{outer}", *(["udp", "gue"] if encapsulation == "gue" else []), "ipv4", "tcp"]


def test_every_packet_for_a_service_was_sent_on(attached):
    counters = {row["name"]: row["packets"] for row in json.loads(ctl("counters"))["counters"] if row["packets"]}
    assert counters["forward_tx"] >= 4 * REQUESTS * (2 * len(WAYS) + 4)
    assert not [name for name in counters if name.startswith(("drop_", "bug_"))], counters
