# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is not for a service goes to the host; what is for a service address, but no service, does not."""

import subprocess
from contextlib import contextmanager

import pytest
from balancer import wait_for
from frames import Wire
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

FAMILIES = pytest.mark.parametrize("version", (4, 6))

SERVER = """
import socket, sys
s = socket.create_server((sys.argv[1], 22), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
while True:
    c, _ = s.accept()
    c.sendall(b"SSH-2.0-test\\r\\n" + c.recv(100))
    c.close()
"""
CLIENT = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3]))
s.sendall(b"hello")
print(s.makefile().read(), end="")
"""


def connect(site, address, port, timeout=5, node="client"):
    return site.lab.run(node, "/usr/bin/python3", "-c", CLIENT, address, port, timeout)


@contextmanager
def ssh_like(lab, address):
    """A server on port 22 of the balancer."""
    server = lab.popen("lb", "/usr/bin/python3", "-c", SERVER, address)
    try:
        wait_for("the server listens", lambda: ":22 " in lab.run("lb", "ss", "-Hltn"))
        yield
    finally:
        server.kill()
        server.wait()


@FAMILIES
def test_tcp_to_the_balancer_itself(web, version):
    address = web.lab.address("lb", version)
    with ssh_like(web.lab, address):
        assert connect(web, address, 22) == "SSH-2.0-test\nhello"


@FAMILIES
def test_a_service_on_the_balancers_own_address_leaves_the_rest_of_it_alone(sites, version):
    """unknown-port: pass.  Port 80 of the address is balanced, port 22 is the host's, and it answers pings."""
    site = sites(backends=2, decap=False)
    lab, address = site.lab, site.lab.address("lb", version)
    row = {"name": "www", "address": address, "protocol": "tcp", "ports": [80], "pool": "web", "unknown-port": "pass"}
    site.shunt.write({"web": {b: (lab.address(b, version), 1) for b in lab.backends}}, [row])
    for backend in lab.backends:
        lab.attach_decap(backend, destinations=[address])
        lab.run(backend, "ip", "address", "add", address, "dev", "lo")
    site.start()
    with ssh_like(lab, address):
        assert connect(site, address, 22) == "SSH-2.0-test\nhello"
    lab.run("client", "ping", "-c", 1, "-W", 2, address)
    url = f"http://{address if version == 4 else f'[{address}]'}/"
    answers = {lab.run("client", "curl", "-sS", "--max-time", 3, url).strip() for _ in range(20)}
    assert answers == set(lab.backends)
    counters = site.shunt.counters()
    assert counters["pass_unknown_port"] > 0 and counters["drop_unknown_port"] == 0


@FAMILIES
def test_ping_to_the_balancer_itself(web, version):
    web.lab.run("client", "ping", "-c", 3, "-i", 0.1, "-W", 2, web.lab.address("lb", version))


@FAMILIES
def test_neighbours_are_found_through_the_attached_interface(web, version):
    """ARP and NDP, in both directions, for the router's and for the balancer's address."""
    family = f"-{version}"
    for node, target in (("router", web.lab.address("lb", version)),
                         ("lb", web.lab.info["front"]["router"][version == 6])):
        before = web.lab.run(node, "ip", family, "neigh", "show", target, "dev", "lb0")
        web.lab.run(node, "ip", family, "neigh", "del", target, "dev", "lb0")
        web.lab.run(node, "ping", "-c", 1, "-W", 2, target)
        after = web.lab.run(node, "ip", family, "neigh", "show", target, "dev", "lb0")
        assert "lladdr" in before and after.split("lladdr")[1].split()[0] == before.split("lladdr")[1].split()[0]


@FAMILIES
def test_an_unknown_port_is_dropped_and_counted(web, version):
    before = web.shunt.counters()
    done = subprocess.run(web.lab.argv("client", ["/usr/bin/python3", "-c", CLIENT, web.lab.service(version), "81", "1"]),
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "timed out" in done.stderr.lower()
    after = web.shunt.counters()
    assert after["drop_unknown_port"] > before["drop_unknown_port"]
    assert after["forward_tx"] == before["forward_tx"]


def mac(lab, node, interface):
    return lab.run(node, "ip", "-br", "link", "show", interface).split()[2]


@FAMILIES
@pytest.mark.parametrize("tags", ((100,), (200, 300)), ids=("one tag", "two tags"))
def test_a_tagged_client_frame_keeps_its_tags(web, version, tags):
    """There are no VLAN devices on every kernel, so the router's end of the link is played by hand."""
    lab = web.lab
    link = Ether(src=mac(lab, "router", "lb0"), dst=mac(lab, "lb", "lb0"))
    for tag in tags:
        link /= (Dot1Q if tag == tags[-1] else Dot1AD)(vlan=tag)
    ip = IP if version == 4 else IPv6
    source, service = lab.address("client", version), lab.service(version)
    owners = web.shunt.owners()
    for sport in range(30000, 30010):
        packet = ip(src=source, dst=service) / TCP(sport=sport, dport=80, flags="S", seq=sport)
        with Wire(lab, "router", "lb0") as wire:
            wire.send(link / packet)
            answers = [f for f in map(Ether, wire.frames(0.3)) if IP in f and f[IP].proto in (4, 41)]
        assert len(answers) == 1
        got = answers[0]
        assert (got.src, got.dst) == (link.dst, link.src)
        assert tags_of(got) == list(tags)
        owner = owners[web.shunt.slot(source, sport, service, 80, len(owners))]
        assert got[IP].dst == lab.address(owner)
        inner = got[IP].payload
        assert (inner.src, inner.dst, inner[TCP].sport) == (source, service, sport)


def tags_of(frame):
    found, layer = [], frame.payload
    while isinstance(layer, (Dot1Q, Dot1AD)):
        found.append(layer.vlan)
        layer = layer.payload
    return found
