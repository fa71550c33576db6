# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ping, traceroute and unknown ports, by each setting.  The balancer's host forwards and has a default route to the router,
so that whatever it passed on would go round between the two until its TTL is used up; their stacks count that."""

import json
import subprocess
from contextlib import contextmanager

import pytest

FAMILIES = pytest.mark.parametrize("version", (4, 6))
NOBODY = {4: "192.0.2.99", 6: "2001:db8::99"}  # routed to the balancer, no service
ROUTER = {4: "198.51.100.1", 6: "2001:db8:c::1"}

# A traceroute: what comes back from each hop, as [address, ICMP type, code], or null after a second.
TRACE = """
import json, socket, struct, sys, time
destination, kind, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
six = ":" in destination
family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if six else (socket.AF_INET, socket.IPPROTO_ICMP)
level, hops = (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS) if six else (socket.IPPROTO_IP, socket.IP_TTL)
listener = socket.socket(family, socket.SOCK_RAW, protocol)
def probe(ttl):
    sender = listener if kind == "icmp" else socket.socket(family, socket.SOCK_DGRAM)
    sender.setsockopt(level, hops, ttl)
    check = 0 if six else 0xffff - 0x0800 - 77 - ttl
    message = struct.pack("!BBHHH", 128 if six else 8, 0, check, 77, ttl) if kind == "icmp" else b"probe"
    sender.sendto(message, (destination, 0 if kind == "icmp" else port))
    until = time.monotonic() + 1
    while (left := until - time.monotonic()) > 0:
        listener.settimeout(left)
        try:
            data, source = listener.recvfrom(4096)
        except TimeoutError:
            break
        data = data if six else data[(data[0] & 15) * 4 :]
        if data[0] not in ((128, *range(130, 138)) if six else (8,)):
            return [source[0], data[0], data[1]]
    return None
print(json.dumps([probe(ttl) for ttl in (1, 2, 3)]))
"""
TIME_EXCEEDED = {4: [11, 0], 6: [3, 0]}
ECHO_REPLY = {4: [0, 0], 6: [129, 0]}
PORT_UNREACHABLE = {4: [3, 3], 6: [1, 4]}


def trace(site, version, kind, port=0):
    return json.loads(site.lab.run("client", "/usr/bin/python3", "-c", TRACE, site.lab.service(version), kind, port))


def make(sites, settings=None, **row):
    """Two backends that do not tell each other's services apart; TCP 80 and UDP 53 of both addresses."""
    site = sites(backends=2)
    lab = site.lab
    rows = [{"name": f"{protocol}{v}", "address": lab.service(v), "protocol": protocol, "ports": [port], "pool": "web", **row}
            for v in (4, 6) for protocol, port in (("tcp", 80), ("udp", 53))]
    site.shunt.write({"web": {b: (lab.address(b), 1) for b in lab.backends}}, rows, **({"settings": settings} if settings else {}))
    lab.sh("lb", "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1\n"
                 "for c in all lb0; do echo 0 >/proc/sys/net/ipv4/conf/$c/send_redirects; done\n")
    # A backend's own answers to the probes of a test are not to be limited.
    for backend in lab.backends:
        lab.sh(backend, "sysctl -qw net.ipv4.icmp_ratemask=0 net.ipv6.icmp.ratelimit=0\n")
    lab.sh("router", "sysctl -qw net.ipv4.icmp_ratemask=0 net.ipv6.icmp.ratelimit=0\n")
    return site.start()


@pytest.fixture(scope="module")
def usual(sites):
    """As a document has it that says nothing of all this."""
    return make(sites)


@pytest.fixture(scope="module")
def open_handed(sites):
    """Refuses, forwards pings, answers where a TTL is used up."""
    return make(sites, {"ttl-exceeded": "answer"}, **{"unknown-port": "refuse", "echo": "forward"})


@pytest.fixture(scope="module")
def silent(sites):
    return make(sites, echo="drop")


def stack(site, node, version):
    """(forwarded, TTLs that ran out) of a node's stack."""
    names = ("IpForwDatagrams", "IpInHdrErrors") if version == 4 else ("Ip6OutForwDatagrams", "Ip6InHdrErrors")
    return [int(site.lab.run(node, "nstat", "-asz", name).split()[-2]) for name in names]


@contextmanager
def counting(site, version):
    """What the block changed: the balancer's counters by name, and the stacks of router and balancer."""
    change = {}
    before = site.shunt.counters(), *(stack(site, node, version) for node in ("router", "lb"))
    yield change
    after = site.shunt.counters(), *(stack(site, node, version) for node in ("router", "lb"))
    # What is for no service may come at any time: ARP, neighbour discovery.
    change.update({name: value - before[0][name] for name, value in after[0].items()
                   if value != before[0][name] and name not in ("pass_not_ip", "pass_not_service")})
    for i, node in enumerate(("router", "lb"), 1):
        for j, what in enumerate(("forwarded", "expired")):
            change[f"{node} {what}"] = after[i][j] - before[i][j]


def ping(site, address, count=5, patience=1):
    """Answers received."""
    done = subprocess.run(site.lab.argv("client", ["ping", "-c", count, "-i", "0.05", "-W", patience, address]), check=False,
                          capture_output=True, text=True)
    return int(done.stdout.split(" received")[0].split()[-1])


def curl(site, version, port, seconds=2, address=None):
    """curl's exit status: 7 refused, 28 timed out."""
    address = address or site.lab.service(version)
    url = f"http://{address if version == 4 else f'[{address}]'}:{port}/"
    return subprocess.run(site.lab.argv("client", ["curl", "-s", "--max-time", seconds, url]), check=False,
                          capture_output=True).returncode


@FAMILIES
def test_the_stacks_count_a_loop(usual, version):
    """What is for no service is the host's, and this one routes it back."""
    with counting(usual, version) as change:
        assert ping(usual, NOBODY[version], count=1) == 0
    assert change["router forwarded"] > 20 and change["lb forwarded"] > 20
    assert change["router expired"] + change["lb expired"] == 1


# ---- ping ----


@FAMILIES
@pytest.mark.parametrize("size", (0, 1, 56, 1400))
def test_ping_is_answered_by_xdp(usual, version, size):
    with counting(usual, version) as change:
        usual.lab.run("client", "ping", "-c", 5, "-i", 0.05, "-W", 2, "-s", size, usual.lab.service(version))
    assert change == {"answer_echo": 5, "router forwarded": 10, "router expired": 0, "lb forwarded": 0, "lb expired": 0}


@FAMILIES
def test_ping_forwarded_is_answered_by_a_backend(open_handed, version):
    with counting(open_handed, version) as change:
        assert ping(open_handed, open_handed.lab.service(version)) == 5
    assert change["forward_tx"] == 5 and "answer_echo" not in change
    assert (change["lb forwarded"], change["lb expired"], change["router expired"]) == (0, 0, 0)


@FAMILIES
def test_ping_dropped(silent, version):
    with counting(silent, version) as change:
        assert ping(silent, silent.lab.service(version), patience=0.5) == 0
    assert change == {"drop_echo": 5, "router forwarded": 5, "router expired": 0, "lb forwarded": 0, "lb expired": 0}


# ---- traceroute: the router, then the load balancer, then a backend ----


@FAMILIES
def test_traceroute_by_icmp_ends_at_the_service(usual, version):
    service = [usual.lab.service(version), *ECHO_REPLY[version]]
    assert trace(usual, version, "icmp") == [[ROUTER[version], *TIME_EXCEEDED[version]], service, service]


@FAMILIES
def test_traceroute_by_udp_to_an_unknown_port_ends_in_silence(usual, version):
    with counting(usual, version) as change:
        assert trace(usual, version, "udp", 33434) == [[ROUTER[version], *TIME_EXCEEDED[version]], None, None]
    assert change == {"drop_unknown_port": 2, "router forwarded": 2, "router expired": 1, "lb forwarded": 0, "lb expired": 0}


@FAMILIES
def test_traceroute_by_udp_to_an_unknown_port_that_refuses(open_handed, version):
    refused = [open_handed.lab.service(version), *PORT_UNREACHABLE[version]]
    assert trace(open_handed, version, "udp", 33434) == [[ROUTER[version], *TIME_EXCEEDED[version]], refused, refused]


@FAMILIES
def test_traceroute_to_a_service_hides_the_balancer(usual, version):
    """UDP 53 has no server: the backend says so itself, from the service's address."""
    with counting(usual, version) as change:
        hops = trace(usual, version, "udp", 53)
    assert hops == [[ROUTER[version], *TIME_EXCEEDED[version]], None, [usual.lab.service(version), *PORT_UNREACHABLE[version]]]
    assert (change["drop_ttl"], change["forward_tx"]) == (1, 1)


@FAMILIES
@pytest.mark.parametrize("kind, last", (("udp", PORT_UNREACHABLE), ("icmp", ECHO_REPLY)))
def test_traceroute_to_a_service_shows_the_balancer(open_handed, version, kind, last):
    service = open_handed.lab.service(version)
    with counting(open_handed, version) as change:
        hops = trace(open_handed, version, kind, 53)
    assert hops == [[ROUTER[version], *TIME_EXCEEDED[version]], [service, *TIME_EXCEEDED[version]], [service, *last[version]]]
    assert (change["answer_ttl"], change["forward_tx"], change["lb forwarded"]) == (1, 1, 0)


# ---- unknown ports ----


@FAMILIES
def test_curl_to_an_unknown_port_times_out(usual, version):
    with counting(usual, version) as change:
        assert curl(usual, version, 81) == 28
    tries = change.pop("drop_unknown_port")
    assert tries >= 1
    assert change == {"router forwarded": tries, "router expired": 0, "lb forwarded": 0, "lb expired": 0}


@FAMILIES
def test_curl_to_an_unknown_port_that_refuses(open_handed, version):
    with counting(open_handed, version) as change:
        assert curl(open_handed, version, 81) == 7
    assert change == {"answer_refused": 1, "router forwarded": 2, "router expired": 0, "lb forwarded": 0, "lb expired": 0}


@FAMILIES
def test_passed_to_the_host_while_the_address_is_the_hosts(sites, version):
    """Where it is taken away while shunt runs, what was passed before is dropped, and not routed in a loop."""
    site = sites(backends=2)
    lab, service = site.lab, site.lab.service(version)
    local = f"{service}/{32 if version == 4 else 128}"
    lab.sh("lb", "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1\n"
                 "for c in all lb0; do echo 0 >/proc/sys/net/ipv4/conf/$c/send_redirects; done\n")
    lab.run("lb", "ip", "address", "add", local, "dev", "lo")
    row = {"name": "www", "address": service, "protocol": "tcp", "ports": [80], "pool": "web", "unknown-port": "pass"}
    site.shunt.write({"web": {b: (lab.address(b), 1) for b in lab.backends}}, [row])
    site.start()
    with counting(site, version) as change:
        assert curl(site, version, 81) == 7  # the host has no such port, and its stack says so
        assert ping(site, service) == 5
    assert change["pass_unknown_port"] == 6 and "drop_unknown_port" not in change
    assert (change["lb forwarded"], change["lb expired"], change["router expired"]) == (0, 0, 0)

    lab.run("lb", "ip", "address", "del", local, "dev", "lo")
    with counting(site, version) as change:
        assert curl(site, version, 81) == 28
        assert ping(site, service, patience=0.5) == 0
        assert curl(site, version, 80) == 0
    assert change["drop_unknown_port"] >= 6 and "pass_unknown_port" not in change
    assert (change["lb forwarded"], change["lb expired"], change["router expired"]) == (0, 0, 0)
    assert change["forward_tx"] > 0
