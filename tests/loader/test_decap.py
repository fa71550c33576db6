# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The decapsulating role's lists."""

import pytest

from conftest import program_of


def lists(net):
    decap = net.status()["decap"]
    return decap["allow_sources"], decap["allow_destinations"]


def test_lists_are_set_changed_and_kept(net):
    done = net.attach("eth0", "--role", "decap", "--allow-source", "10.0.0.2", "--allow-source", "fd00::/64",
                      "--allow-destination", "192.0.2.0/24")
    assert "role decap" in done.out and done.err == ""
    assert lists(net) == (["10.0.0.2/32", "fd00::/64"], ["192.0.2.0/24"])
    assert net.status()["lb"] is None
    program = program_of(done.out)
    net.attach("eth0", "--role", "decap", "--allow-source", "10.0.0.0/8")
    assert lists(net) == (["10.0.0.0/8"], ["192.0.2.0/24"])
    assert net.interfaces()["eth0"]["program_id"] != program
    net.attach("eth0", "--role", "decap")
    assert lists(net) == (["10.0.0.0/8"], ["192.0.2.0/24"])


def test_an_empty_list_denies_all_and_is_said(net):
    done = net.attach("eth0", "--role", "decap", "--allow-source", "10.0.0.0/8")
    assert "--allow-destination is empty" in done.err and "--allow-source is empty" not in done.err
    done = net.attach("eth0", "--role", "decap", "--allow-source", "none")
    assert lists(net) == ([], []) and "--allow-source is empty" in done.err
    assert "every tunnel packet is dropped" in net.loader("status").out


def test_lists_stay_as_they_were_where_attaching_fails(net):
    net.attach("eth0", "--role", "decap", "--allow-source", "10.0.0.0/8", "--allow-destination", "192.0.2.0/24")
    net.sh("a", "ip link add br0 type bridge")
    done = net.loader("attach", "br0", "--role", "decap", "--allow-source", "10.0.0.2", "--allow-destination", "none")
    assert done.code == 1 and "br0" in done.err
    assert lists(net) == (["10.0.0.0/8"], ["192.0.2.0/24"])


def test_more_prefixes_than_fit(net):
    words = [w for i in range(1025) for w in ("--allow-source", f"10.0.{i >> 8}.{i & 255}")]
    done = net.loader("attach", "eth0", "--role", "decap", *words)
    assert done.code == 1 and "at most 1024 fit" in done.err and net.xdp("eth0") is None
    net.attach("eth0", "--role", "decap", *words[:2048])
    other = [w.replace("10.0.", "10.1.") for w in words[:2048]]
    net.attach("eth0", "--role", "decap", *other)  # full with the old ones: they have to go first
    assert len(lists(net)[0]) == 1024 and all(p.startswith("10.1.") for p in lists(net)[0])


def test_upgrade_and_detach(net):
    program = program_of(net.attach("eth0", "--role", "decap", "--allow-source", "10.0.0.0/8").out)
    assert "role decap: 1 interface" in net.must(net.loader("upgrade")).out
    assert net.xdp("eth0")[1] != program
    done = net.loader("upgrade", "--backends", 10)
    assert done.code == 1 and "has no capacities" in done.err
    net.must(net.loader("detach", "eth0"))
    assert net.xdp("eth0") is None and lists(net)[0] == ["10.0.0.0/8"]


def gue_ports(net):
    return {name: link["gue_port"] for name, link in net.interfaces().items()}


def test_the_port_of_gue_is_set_shown_and_kept_by_upgrades(net):
    words = ["--role", "decap", "--allow-source", "10.0.0.0/8", "--allow-destination", "192.0.2.0/24"]
    net.attach("eth0", *words)
    assert gue_ports(net) == {"eth0": 6080} and "GUE port 6080" in net.loader("status").out
    net.attach("eth0", *words, "--gue-port", "5555")
    assert gue_ports(net) == {"eth0": 5555}
    net.must(net.loader("upgrade"))
    assert gue_ports(net) == {"eth0": 5555} and "GUE port 5555" in net.loader("status").out
    net.attach("eth0", *words, "--gue-port", "0")
    net.must(net.loader("upgrade"))
    assert gue_ports(net) == {"eth0": None} and "GUE" not in net.loader("status").out


def test_each_interface_keeps_its_own_port(net):
    net.add_pair("eth1")
    net.attach("eth0", "--role", "decap", "--gue-port", "5555")
    net.attach("eth1", "--role", "decap")
    net.must(net.loader("upgrade"))
    assert gue_ports(net) == {"eth0": 5555, "eth1": 6080}


@pytest.mark.parametrize("port", ("65536", "-1", "x", "6080x", ""))
def test_what_is_no_port_is_refused(net, port):
    done = net.loader("attach", "eth0", "--role", "decap", f"--gue-port={port}")
    assert done.code == 2 and "give a UDP port, or 0 for none" in done.err and net.xdp("eth0") is None


def test_a_port_is_only_for_decap(net):
    done = net.loader("attach", "eth0", "--gue-port", "6080")
    assert done.code == 2 and "only for --role decap" in done.err
