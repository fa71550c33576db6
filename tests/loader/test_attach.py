# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""attach and detach on good and on bad interfaces."""

import shutil
import subprocess

import pytest
from balancer import wait_for
from conftest import PASS, exists, program_of


@pytest.mark.parametrize("words, mode", [((), "native"), (("--mode", "native"), "native"),
                                         (("--mode", "generic"), "generic"), (("--mode", "auto"), "native")])
def test_mode_in_force_is_the_kernels(net, words, mode):
    done = net.attach("eth0", *words)
    assert f"{mode} mode" in done.out
    assert net.xdp("eth0") == (mode, program_of(done.out))
    link = net.interfaces()["eth0"]
    assert (link["mode"], link["role"], link["frags"]) == (mode, "lb", False)
    assert net.must(net.loader("detach", "eth0")).out == "eth0: detached\n"
    assert net.xdp("eth0") is None
    assert net.interfaces() == {}


def test_without_a_daemon_everything_passes(net):
    net.sh("a", "ip address add 10.9.0.1/24 dev eth0")
    net.sh("b", "ip address add 10.9.0.2/24 dev eth0")
    net.attach("eth0")
    assert net.run("b", "ping", "-c", 3, "-i", "0.05", "-W", 1, "10.9.0.1").code == 0
    lb = net.status()["lb"]
    assert not lb["published"]
    assert lb["counters"]["pass_no_config"] >= 3


def test_attach_twice_replaces_the_program_in_place(net):
    first = program_of(net.attach("eth0").out)
    link = net.interfaces()["eth0"]["link_id"]
    done = net.attach("eth0")
    assert "already attached, program replaced in place" in done.out
    now = net.interfaces()["eth0"]
    assert now["link_id"] == link and now["program_id"] != first
    assert net.xdp("eth0") == ("native", now["program_id"])
    assert not exists("prog", first)


def test_another_mode_needs_a_detach(net):
    program = program_of(net.attach("eth0", "--mode", "generic").out)
    done = net.loader("attach", "eth0", "--mode", "native")
    assert done.code == 1 and "attached in generic mode" in done.err and "detach eth0" in done.err
    assert net.xdp("eth0") == ("generic", program)
    assert "generic mode" in net.attach("eth0").out  # not asked for: it keeps what it has
    net.must(net.loader("detach", "eth0"))
    assert net.xdp("eth0") is None


def test_another_role_needs_a_detach(net):
    program = program_of(net.attach("eth0").out)
    done = net.loader("attach", "eth0", "--role", "decap")
    assert done.code == 1 and "attached with the role lb" in done.err
    assert net.xdp("eth0") == ("native", program)


def test_detach_twice(net):
    net.attach("eth0")
    net.must(net.loader("detach", "eth0"))
    assert net.must(net.loader("detach", "eth0")).out == "eth0: nothing is attached\n"


@pytest.mark.parametrize("mode", ["xdpdrv", "xdpgeneric"])
def test_a_foreign_program_is_named_and_left_alone(net, mode):
    net.sh("a", f"ip link set eth0 {mode} obj {PASS} sec xdp.frags")
    before = net.xdp("eth0")
    for verb in ("attach", "detach"):
        done = net.loader(verb, "eth0")
        assert done.code == 1
        for part in ("eth0", "lab_pass", f"id {before[1]}", f"{before[0]} mode", "tag "):
            assert part in done.err, done
        assert net.xdp("eth0") == before


def test_the_program_of_another_instance_is_left_alone(net):
    program = program_of(net.attach("eth0").out)
    other = net.new_instance()
    for verb in ("attach", "detach"):
        done = net.loader(verb, "eth0", instance=other)
        assert done.code == 1 and f"instance '{net.instance}'" in done.err
    assert net.xdp("eth0") == ("native", program)


def test_two_instances_do_not_see_each_other(net):
    net.add_pair("eth1")
    other = net.new_instance()
    net.attach("eth0")
    net.attach("eth1", instance=other)
    assert list(net.interfaces()) == ["eth0"]
    assert list(net.interfaces(other)) == ["eth1"]
    net.must(net.loader("detach", "eth1", instance=other))
    assert net.xdp("eth0") and not net.xdp("eth1")


def test_one_instance_in_two_namespaces_with_equal_indexes(net):
    net.attach("eth0")
    net.attach("eth0", space="b")
    links = net.status()["interfaces"]
    assert len(links) == 2 and links[0]["ifindex"] == links[1]["ifindex"]
    assert sorted(link["interface"] or "" for link in links) == ["", "eth0"]
    net.must(net.loader("detach", "eth0", space="b"))
    assert net.xdp("eth0", "b") is None and net.xdp("eth0")


def test_several_interfaces_or_none(net):
    net.add_pair("eth1")
    net.sh("a", "ip link add br0 type bridge")  # Ethernet, without native XDP
    done = net.loader("attach", "eth0", "br0", "eth1")
    assert done.code == 1 and "br0: the driver bridge refused native mode" in done.err
    assert "--mode generic" in done.err
    assert net.xdp("eth0") is None and net.xdp("eth1") is None and net.interfaces() == {}
    program = program_of(net.attach("eth0").out)
    assert net.loader("attach", "eth0", "br0").code == 1
    assert net.xdp("eth0") == ("native", program)  # the program that it had
    done = net.attach("eth0", "eth1")
    assert net.xdp("eth0") == net.xdp("eth1") and net.xdp("eth0")[1] != program


def test_auto_says_loudly_that_it_fell_back(net):
    net.sh("a", "ip link add br0 type bridge")
    done = net.attach("br0", "--mode", "auto")
    assert "FELL BACK to generic" in done.err and "bridge refused native mode" in done.err
    assert "generic mode" in done.out
    assert net.xdp("br0")[0] == "generic" and net.interfaces()["br0"]["mode"] == "generic"


def test_not_ethernet(net):
    net.sh("a", "ip tuntap add tun0 mode tun")
    for name, part in (("tun0", "not an Ethernet device"), ("lo", "loopback")):
        done = net.loader("attach", name, "eth0")
        assert done.code == 1 and f"{name}: " in done.err and part in done.err
        assert net.xdp("eth0") is None
    assert not net.pins.exists()  # refused before anything was made


def test_tap_is_ethernet(net):
    net.sh("a", "ip tuntap add tap0 mode tap")
    assert "tap0: attached" in net.attach("tap0").out


@pytest.mark.parametrize("name", ["nope", "a-name-longer-than-ifnamsiz", "../eth0"])
@pytest.mark.parametrize("verb", ["attach", "detach"])
def test_unknown_interface(net, verb, name):
    done = net.loader(verb, name)
    assert done.code == 1 and f"{name}: no such interface" in done.err


def test_named_twice(net):
    done = net.loader("attach", "eth0", "eth0")
    assert done.code == 1 and "eth0: named twice" in done.err and net.xdp("eth0") is None
    net.attach("eth0")
    done = net.loader("detach", "eth0", "eth0")
    assert done.code == 1 and "eth0: named twice" in done.err and net.xdp("eth0") is not None


def test_jumbo_mtu_takes_multi_buffer_frames(net):
    for space in "ab":
        net.sh(space, "ip link set eth0 mtu 9000")
    done = net.attach("eth0")
    assert "native mode" in done.out and "multi-buffer" in done.out
    assert net.interfaces()["eth0"]["frags"]
    net.sh("a", "ip address add 10.9.0.1/24 dev eth0")
    net.sh("b", "ip address add 10.9.0.2/24 dev eth0")
    assert net.run("b", "ping", "-c", 2, "-i", "0.05", "-W", 1, "-M", "do", "-s", 8900, "10.9.0.1").code == 0
    net.must(net.loader("upgrade"))
    assert net.interfaces()["eth0"]["frags"] and net.xdp("eth0")[0] == "native"


def test_jumbo_mtu_of_the_peer_alone(net):
    """The kernel refuses the plain program though our own MTU is small: the other variant is tried."""
    net.sh("b", "ip link set eth0 mtu 9000")
    assert "multi-buffer" in net.attach("eth0").out


def test_mtu_raised_later(net):
    net.attach("eth0")
    assert net.run("b", "ip", "link", "set", "eth0", "mtu", 9000).code != 0  # the kernel's guard
    for space in "ab":
        net.sh(space, "ip link set eth0 mtu 1400")
    net.must(net.loader("detach", "eth0"))
    for space in "ab":
        net.sh(space, "ip link set eth0 mtu 9000")
    net.attach("eth0")
    for space in "ab":
        net.sh(space, "ip link set eth0 mtu 1500")
    done = net.attach("eth0")  # back to the plain variant, in place; the pin's name follows
    assert "replaced in place" in done.out and not net.interfaces()["eth0"]["frags"]


def test_interface_that_goes_away(net):
    net.add_pair("eth1")
    net.attach("eth0", "eth1")
    net.sh("a", "ip link del eth1")
    assert list(net.interfaces()) == ["eth0"]
    assert len(list((net.pins / "links").iterdir())) == 2
    net.attach("eth0")
    assert len(list((net.pins / "links").iterdir())) == 1


def test_namespace_that_goes_away(net):
    net.attach("eth0")
    net.attach("eth0", space="b")
    subprocess.run(["ip", "netns", "del", net.spaces.pop("b")], check=True)
    # A veth goes with its peer; namespaces are taken down in the background.
    wait_for("the interfaces are gone", lambda: net.status()["interfaces"] == [])


def test_an_interface_attached_by_hand_again_after_the_pin_is_lost(net):
    net.attach("eth0")
    shutil.rmtree(net.pins / "links")
    wait_for("the link, which nothing holds any more, is freed", lambda: net.xdp("eth0") is None)
    assert "eth0: attached" in net.attach("eth0").out


def test_names_that_bpffs_would_refuse_and_renames(net):
    net.sh("a", "ip link set eth0 down; ip link set eth0 name eth0.7; ip link set eth0.7 up")
    net.attach("eth0.7")
    net.sh("a", "ip link set eth0.7 down; ip link set eth0.7 name wan; ip link set wan up")
    assert list(net.interfaces()) == ["wan"] and net.xdp("wan")[0] == "native"
    net.must(net.loader("detach", "wan"))
    assert net.xdp("wan") is None
