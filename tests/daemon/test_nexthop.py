# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The ways to backends, followed in real namespaces: a host, two gateways and a server on one wire, and a far network.

nexthop_watch prints each change that the library tells; the state is what was told last of each address.
"""

import json
import os
import secrets
import signal
import subprocess
import threading
import time

import pytest

from rawcontrol import ask, in_force
from shuntlab import BUILD, run

GATEWAYS = {"g1": ("10.7.0.1", "fd07::1"), "g2": ("10.7.0.2", "fd07::2")}
SERVER = ("10.7.0.9", "fd07::9")
FAR = ("10.8.0.5", "fd08::5")
LONG = 12.0


class Wire:
    """Namespaces on one bridge."""

    def __init__(self):
        self.name = f"shunt-n-{secrets.token_hex(4)}"
        self.watcher, self.told, self.lines = None, {}, []

    def netns(self, node):
        return f"{self.name}-{node}"

    def sh(self, node, script):
        return run(["nsenter", f"--net=/run/netns/{self.netns(node)}", "--", "sh", "-euc", script])

    def __enter__(self):
        nodes = ["host", "wire", "g1", "g2", "server"]
        for node in nodes:
            run(["ip", "netns", "add", self.netns(node)])
            self.sh(node, "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad; ip link set lo up")
        self.sh("wire", "ip link add sw type bridge; ip link set sw up")
        for node in ["host", "g1", "g2", "server"]:
            run(["ip", "-n", self.netns(node), "link", "add", "eth0", "type", "veth", "peer", "name", node, "netns",
                 self.netns("wire")])
            self.sh("wire", f"ip link set {node} master sw up")
        for node, (v4, v6) in {"host": ("10.7.0.100", "fd07::100"), "server": SERVER, **GATEWAYS}.items():
            self.sh(node, f"ip address add {v4}/24 dev eth0; ip address add {v6}/64 dev eth0 nodad; ip link set eth0 up")
        self.sh("host", "ip route add 10.8.0.0/16 via 10.7.0.1; ip route add fd08::/64 via fd07::1")
        return self

    def __exit__(self, *_):
        if self.watcher:
            self.watcher.kill()
            self.watcher.communicate()
        for node in ["host", "wire", "g1", "g2", "server"]:
            subprocess.run(["ip", "netns", "del", self.netns(node)], check=False, capture_output=True)

    def mac(self, node):
        return json.loads(self.sh(node, "ip -j link show eth0"))[0]["address"]

    def watch(self, *addresses):
        self.watcher = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.netns('host')}", "--", BUILD / "tests/daemon/nexthop_watch",
             *addresses], stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, args=(self.watcher.stdout,), daemon=True).start()

    def _read(self, stream):
        for line in stream:
            entry = json.loads(line)
            self.lines.append(entry)
            self.told[entry["address"]] = entry

    def expect(self, address, within=5.0, **values):
        until = time.monotonic() + within
        while True:
            now = self.told.get(address, {})
            if all(now.get(k) == v for k, v in values.items()):
                return now
            assert time.monotonic() < until, f"{address}: expected {values}, was told {self.lines}"
            assert self.watcher.poll() is None
            time.sleep(0.02)


@pytest.fixture
def wire():
    with Wire() as made:
        yield made


def test_on_link_and_behind_a_gateway_in_both_families(wire):
    wire.watch(*SERVER, *FAR)
    for index, address in enumerate(SERVER):
        way = wire.expect(address, known=True, mac=wire.mac("server"))
        assert way["interface"] == "eth0" and way["mtu"] == 1500 and way["source_mac"] == wire.mac("host")
        assert way["source"] == ("10.7.0.100", "fd07::100")[index]
    for address in FAR:
        wire.expect(address, known=True, mac=wire.mac("g1"))


def test_gateway_change_and_route_deletion(wire):
    wire.watch(*FAR)
    for address in FAR:
        wire.expect(address, mac=wire.mac("g1"))
    wire.sh("host", "ip route replace 10.8.0.0/16 via 10.7.0.2; ip route replace fd08::/64 via fd07::2")
    for address in FAR:
        wire.expect(address, known=True, mac=wire.mac("g2"))
    wire.sh("host", "ip route add 10.8.0.5/32 via 10.7.0.1; ip route add fd08::5/128 via fd07::1")
    for address in FAR:
        wire.expect(address, known=True, mac=wire.mac("g1"))
    wire.sh("host", "ip route del 10.8.0.5/32; ip route del 10.8.0.0/16; ip route del fd08::5/128; "
                    "ip route del fd08::/64")
    for address in FAR:
        wire.expect(address, known=False, why="no route to it")


def test_next_hop_objects_and_rules(wire):
    wire.sh("host", "ip nexthop add id 1 via 10.7.0.1 dev eth0; ip route replace 10.8.0.0/16 nhid 1")
    wire.watch(FAR[0])
    wire.expect(FAR[0], mac=wire.mac("g1"))
    wire.sh("host", "ip nexthop replace id 1 via 10.7.0.2 dev eth0")
    wire.expect(FAR[0], known=True, mac=wire.mac("g2"))
    wire.sh("host", "ip route add 10.8.0.0/16 via 10.7.0.1 table 77; ip rule add to 10.8.0.0/16 table 77")
    wire.expect(FAR[0], known=True, mac=wire.mac("g1"))


def test_ipv4_by_an_ipv6_gateway(wire):
    wire.sh("host", "ip route replace 10.8.0.0/16 via inet6 fd07::2 dev eth0")
    wire.watch(FAR[0])
    wire.expect(FAR[0], known=True, mac=wire.mac("g2"))


def test_neighbour_mac_change(wire):
    wire.watch(SERVER[0])
    wire.expect(SERVER[0], known=True, mac=wire.mac("server"))
    wire.sh("server", "ip link set eth0 address 02:00:00:00:77:01")
    wire.sh("server", "arping -q -c 1 -U -I eth0 10.7.0.9 || true")
    wire.sh("host", "ip neigh replace 10.7.0.9 lladdr 02:00:00:00:77:01 dev eth0 nud reachable")
    wire.expect(SERVER[0], known=True, mac="02:00:00:00:77:01")


def test_neighbour_flush_is_healed(wire):
    wire.watch(*SERVER, FAR[0])
    for address in (*SERVER, FAR[0]):
        wire.expect(address, known=True)
    wire.sh("server", "ip link set eth0 address 02:00:00:00:77:02")
    wire.sh("host", "ip neigh flush dev eth0")
    for address in SERVER:
        wire.expect(address, known=True, mac="02:00:00:00:77:02")
    wire.expect(FAR[0], known=True, mac=wire.mac("g1"))


def test_kernel_is_asked_to_keep_them(wire):
    wire.watch(SERVER[0])
    wire.expect(SERVER[0], known=True)
    entry = wire.sh("host", "ip neigh show 10.7.0.9")
    assert "managed" in entry


def test_permanent_entries_stay_as_they_are(wire):
    wire.sh("host", "ip neigh add 10.7.0.9 lladdr 02:00:00:00:77:03 dev eth0 nud permanent;"
                    "ip neigh add fd07::9 lladdr 02:00:00:00:77:03 dev eth0 nud permanent proto static router")
    before = wire.sh("host", "ip neigh show nud permanent; ip -6 neigh show nud permanent")
    wire.watch(*SERVER)
    for address in SERVER:
        wire.expect(address, known=True, mac="02:00:00:00:77:03")
    time.sleep(1.5)  # longer than the first pause of questions
    assert wire.sh("host", "ip neigh show nud permanent; ip -6 neigh show nud permanent") == before


def static_entries(addresses):
    """Words of ip -batch, and what ip shows of them afterwards."""
    macs = {address: f"02:00:00:00:79:{index:02x}" for index, address in enumerate(addresses)}
    return ("".join(f"neigh replace {address} lladdr {mac} dev eth0 nud permanent\n" for address, mac in macs.items()),
            sorted(f"{address} dev eth0 lladdr {mac} PERMANENT " for address, mac in macs.items()), macs)


def batch(wire, words):
    subprocess.run(["ip", "-n", wire.netns("host"), "-batch", "-"], input=words, text=True, check=True)


def shown(wire, addresses):
    lines = (wire.sh("host", "ip -4 neigh show; ip -6 neigh show")).splitlines()
    return sorted(line for line in lines if line.split()[0] in addresses)


@pytest.mark.parametrize("pause", [0, 0.01, 0.03, 0.06, 0.1])
def test_entries_that_become_permanent_at_the_first_question_stay_so(wire, pause):
    """100 questions go out at once, and more 50 ms later: some of 200 entries come before theirs, some after."""
    addresses = [f"10.7.0.{i}" for i in range(120, 220)] + [f"fd07::{i:x}" for i in range(0x120, 0x184)]
    words, expected, macs = static_entries(addresses)
    wire.watch(*addresses)
    time.sleep(pause)
    batch(wire, words)
    for address, mac in macs.items():
        wire.expect(address, known=True, mac=mac)
    time.sleep(1.5)
    assert shown(wire, addresses) == expected


def test_mtu_of_interface_and_route(wire):
    wire.watch(SERVER[0], FAR[0], FAR[1])
    wire.expect(FAR[0], known=True, mtu=1500)
    wire.sh("host", "ip route replace 10.8.0.0/16 via 10.7.0.1 mtu 1300; ip -6 route replace fd08::/64 via fd07::1 mtu 1350")
    wire.expect(FAR[0], known=True, mtu=1300)
    wire.expect(FAR[1], known=True, mtu=1350)
    wire.sh("host", "ip link set eth0 mtu 1400")
    wire.expect(SERVER[0], known=True, mtu=1400)
    wire.expect(FAR[0], known=True, mtu=1300)


def test_link_down_and_up(wire):
    wire.watch(*SERVER)
    for address in SERVER:
        wire.expect(address, known=True)
    wire.sh("host", "echo 1 >/proc/sys/net/ipv6/conf/all/keep_addr_on_down; ip link set eth0 down")
    for address in SERVER:
        wire.expect(address, known=False)
    wire.sh("host", "ip link set eth0 up")
    for address in SERVER:
        wire.expect(address, within=LONG, known=True, mac=wire.mac("server"))


def test_carrier_loss_and_return(wire):
    wire.watch(SERVER[0])
    wire.expect(SERVER[0], known=True)
    wire.sh("wire", "ip link set host down")
    wire.expect(SERVER[0], known=False, why="interface eth0 is down")
    wire.sh("wire", "ip link set host up")
    wire.expect(SERVER[0], within=LONG, known=True, mac=wire.mac("server"))


def test_interface_mac_change(wire):
    wire.watch(SERVER[0])
    wire.expect(SERVER[0], known=True, source_mac=wire.mac("host"))
    wire.sh("host", "ip link set eth0 address 02:00:00:00:77:04")
    wire.expect(SERVER[0], within=LONG, known=True, source_mac="02:00:00:00:77:04")


def test_interface_gone_and_another(wire):
    wire.watch(SERVER[0])
    wire.expect(SERVER[0], known=True)
    wire.sh("host", "ip link del eth0")
    wire.expect(SERVER[0], known=False)
    run(["ip", "-n", wire.netns("host"), "link", "add", "eth9", "type", "veth", "peer", "name", "host9", "netns",
         wire.netns("wire")])
    wire.sh("wire", "ip link set host9 master sw up")
    wire.sh("host", "ip address add 10.7.0.101/24 dev eth9; ip link set eth9 up")
    wire.expect(SERVER[0], within=LONG, known=True, interface="eth9", source="10.7.0.101", mac=wire.mac("server"))


def test_silent_and_forbidden_ones_say_why(wire):
    wire.sh("host", "ip route add unreachable 10.9.1.0/24; ip route add blackhole 10.9.2.0/24; "
                    "ip route add prohibit 10.9.3.0/24; ip -6 route add unreachable fd09:1::/64; "
                    "ip -6 route add blackhole fd09:2::/64")
    wire.watch("10.7.0.77", "fd07::77", "10.9.1.1", "10.9.2.1", "10.9.3.1", "fd09:1::1", "fd09:2::1", "203.0.113.1",
               "10.7.0.100")
    for address, why in {"10.7.0.77": "10.7.0.77 does not answer", "fd07::77": "fd07::77 does not answer",
                         "10.9.1.1": "the route to it says unreachable", "10.9.2.1": "the route to it is a blackhole",
                         "10.9.3.1": "the route to it prohibits", "fd09:1::1": "the route to it says unreachable",
                         "fd09:2::1": "the route to it is a blackhole", "203.0.113.1": "no route to it",
                         "10.7.0.100": "it is an address of this host"}.items():
        wire.expect(address, within=LONG, known=False, why=why, pending=0) if address in ("10.7.0.77", "fd07::77") \
            else wire.expect(address, within=LONG, known=False, why=why)


def test_one_that_comes_to_life_is_found(wire):
    wire.watch("10.7.0.77")
    wire.expect("10.7.0.77", within=LONG, known=False, why="10.7.0.77 does not answer")
    wire.sh("server", "ip address add 10.7.0.77/24 dev eth0")
    wire.expect("10.7.0.77", within=20, known=True, mac=wire.mac("server"))


def test_lost_events_are_made_good(wire):
    """The watcher sleeps while more happens than its socket holds, and the gateway changes in between."""
    wire.watch(SERVER[0], FAR[0])
    for address in (SERVER[0], FAR[0]):
        wire.expect(address, known=True)
    os.kill(wire.watcher.pid, signal.SIGSTOP)
    routes = "".join(f"route add 100.{i // 250}.{i % 250}.0/24 via 10.7.0.1\n" for i in range(15000))
    routes += routes.replace("route add", "route del")
    subprocess.run(["ip", "-n", wire.netns("host"), "-batch", "-"], input=routes, text=True, check=True)
    wire.sh("host", "ip route replace 10.8.0.0/16 via 10.7.0.2 mtu 1280; ip link set eth0 mtu 1400")
    drops = sum(int(line.split()[8]) for line in
                open(f"/proc/{wire.watcher.pid}/net/netlink", encoding="ascii").read().splitlines()[1:])
    os.kill(wire.watcher.pid, signal.SIGCONT)
    wire.expect(FAR[0], known=True, mac=wire.mac("g2"), mtu=1280)
    wire.expect(SERVER[0], known=True, mtu=1400)
    assert drops > 0, "this test lost no event: it shows nothing"


def test_ten_thousand_behind_one_gateway_ask_once(wire):
    addresses = [f"10.8.{i // 250}.{i % 250 + 1}" for i in range(10000)]
    wire.watch(*addresses)
    until = time.monotonic() + 20
    while sum(w["known"] for w in list(wire.told.values())) < 10000:
        assert time.monotonic() < until, f"{len(wire.told)} of 10,000 told"
        time.sleep(0.05)
    entries = wire.sh("host", "ip -4 neigh show").splitlines()
    assert len(entries) == 1 and entries[0].startswith("10.7.0.1 ")


# ---- through the daemon ----

def row(shunt, name="web1"):
    return ask(shunt, "BackendList", name=name)["backends"][0]


def expect_row(shunt, **values):
    shunt.wait(lambda: all(row(shunt)[k] == v for k, v in values.items()), f"web1 has {values}; it is {row(shunt)}")


def test_daemon_follows_a_mac_without_an_epoch(running):
    before = in_force(running)
    running.sh("ip neigh replace 10.1.0.11 lladdr 02:00:00:00:88:01 dev eth0 nud permanent")
    expect_row(running, nexthop="02:00:00:00:88:01")
    assert in_force(running) == before


def wait_until_kept(shunt, address):
    shunt.wait(lambda: "managed" in shunt.sh(f"ip neigh show {address}"), "the kernel keeps it")


def test_daemon_keeps_the_last_mac_and_the_slots(running):
    before, mac = in_force(running), row(running)["nexthop"]
    running.sh("ip link set eth0 down")
    running.wait(lambda: row(running)["why"], "the daemon sees that the way is gone")
    assert row(running)["nexthop"] == mac and row(running)["reachable"] and row(running)["slots"] > 0
    assert in_force(running) == before
    running.kill()
    running.start()
    assert in_force(running) == before
    running.sh("ip link set eth0 up")
    wait_until_kept(running, "10.1.0.11")
    running.sh("ip neigh replace 10.1.0.11 lladdr 02:00:00:00:88:02 dev eth0 nud permanent")
    expect_row(running, nexthop="02:00:00:00:88:02", why="")
    assert in_force(running) == before


def test_daemon_gives_slots_to_one_that_comes_to_life(running):
    ask(running, "BackendAdd", pool="web", name="late", address="10.1.0.77")
    assert row(running, "late")["slots"] == 0
    wait_until_kept(running, "10.1.0.77")
    running.sh("ip neigh replace 10.1.0.77 lladdr 02:00:00:00:88:03 dev eth0 nud permanent")
    running.wait(lambda: row(running, "late")["slots"] > 0, "it has slots")


def test_daemon_leaves_static_neighbours_of_all_times_alone(shunt):
    """Before it starts, right after a backend comes, after it was resolved; also when the backend goes."""
    shunt.sh("ip neigh replace 10.1.0.11 lladdr 02:00:00:00:88:04 dev eth0 nud permanent")
    shunt.start()
    ask(shunt, "BackendAdd", pool="web", name="late", address="10.1.0.77")
    shunt.sh("ip neigh replace 10.1.0.77 lladdr 02:00:00:00:88:05 dev eth0 nud permanent")
    ask(shunt, "BackendAdd", pool="web", name="last", address="10.1.0.78")
    wait_until_kept(shunt, "10.1.0.78")
    shunt.sh("ip neigh replace 10.1.0.78 lladdr 02:00:00:00:88:06 dev eth0 nud permanent")
    for name, mac in {"web1": "04", "late": "05", "last": "06"}.items():
        shunt.wait(lambda: row(shunt, name)["nexthop"] == f"02:00:00:00:88:{mac}", f"the way to {name}")
    for name in ("late", "last"):
        ask(shunt, "BackendDel", pool="web", name=name)
    time.sleep(0.5)
    assert sorted(shunt.sh("ip neigh show to 10.1.0.11; ip neigh show to 10.1.0.77; ip neigh show to 10.1.0.78")
                  .splitlines()) == [f"{address} dev eth0 lladdr 02:00:00:00:88:{mac} PERMANENT "
                                     for address, mac in (("10.1.0.11", "04"), ("10.1.0.77", "05"), ("10.1.0.78", "06"))]
    assert shunt.stop() == 0, shunt.log_tail()


def test_daemon_lets_go_of_what_it_no_longer_needs(running):
    ask(running, "BackendAdd", pool="web", name="late", address="10.1.0.77")
    wait_until_kept(running, "10.1.0.77")
    ask(running, "BackendDel", pool="web", name="late")
    running.wait(lambda: "managed" not in running.sh("ip neigh show 10.1.0.77"), "the kernel lets go of it")


def test_daemon_reports_the_path_mtu(running):
    running.sh("ip route add 10.1.0.11/32 dev eth0 mtu 1300")
    expect_row(running, mtu=1300, mss=1240)
