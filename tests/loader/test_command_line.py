# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Words and options: what is refused changes nothing, and says what is wrong."""

import json

import pytest
from conftest import LOADER, run

USAGE = [
    (("attach",), "interfaces"),
    (("detach",), "interfaces"),
    (("attach", "eth0", "--mode", "fast"), "--mode fast: give native, generic or auto"),
    (("attach", "eth0", "--mode", "offload"), "--mode offload"),
    (("attach", "eth0", "--role", "router"), "--role router: give lb or decap"),
    (("attach", "eth0", "--backends", "many"), "--backends many: give a whole number"),
    (("attach", "eth0", "--backends", "0"), "--backends 0"),
    (("attach", "eth0", "--backends", "-1"), "--backends -1"),
    (("attach", "eth0", "--backends", "1.5"), "--backends 1.5"),
    (("attach", "eth0", "--allow-source", "10.0.0.0/8"), "only for --role decap"),
    (("attach", "eth0", "--role", "decap", "--pools", "9"), "only for --role lb"),
    (("attach", "eth0", "--role", "decap", "--allow-source", "10.0.0.1/8"), "--allow-source 10.0.0.1/8"),
    (("attach", "eth0", "--role", "decap", "--allow-source", "10.0.0.0/33"), "--allow-source 10.0.0.0/33"),
    (("attach", "eth0", "--role", "decap", "--allow-destination", "fd00::/129"), "--allow-destination fd00::/129"),
    (("attach", "eth0", "--role", "decap", "--allow-destination", "web"), "--allow-destination web"),
    (("attach", "eth0", "--frobnicate"), "--frobnicate"),
    (("status", "eth0"), "eth0"),
    (("upgrade", "eth0"), "eth0"),
]


@pytest.mark.parametrize("words, part", USAGE, ids=lambda v: " ".join(v) if isinstance(v, tuple) else "")
def test_usage(net, words, part):
    done = net.loader(*words)
    assert done.code == 2 and part in done.err, done
    assert not net.pins.exists() and net.xdp("eth0") is None


def test_no_verb_and_unknown_verb():
    assert run(LOADER).code == 2
    done = run(LOADER, "frob")
    assert done.code == 2 and '"frob" is no verb' in done.err


def test_help_and_version():
    assert all(verb in run(LOADER, "--help").out for verb in ("attach", "detach", "status", "upgrade"))
    assert run(LOADER, "--version").out.startswith("shunt-loader ")
    for verb in ("attach", "detach", "status", "upgrade"):
        done = run(LOADER, verb, "--help")
        assert done.code == 0 and "--instance" in done.out


@pytest.mark.parametrize("name", ["A", "1x", "a.b", "../x", "", "a" * 32])
def test_instance_names(net, name):
    for verb in (("attach", "eth0"), ("detach", "eth0"), ("status",), ("upgrade",)):
        done = net.loader(*verb, instance=name) if name else net.run("a", LOADER, *verb, "--instance", "")
        assert done.code == 1 and "instance name" in done.err, (verb, done)
    assert net.xdp("eth0") is None


@pytest.mark.parametrize("option, above", [("services", 65537), ("addresses", 16385), ("pools", 65536),
                                           ("backends", 32768), ("flows", (1 << 26) + 1), ("backends", 1 << 40)])
def test_capacity_out_of_range(net, option, above):
    for verb in (("attach", "eth0"), ("upgrade",)):
        done = net.loader(*verb, f"--{option}", above)
        assert done.code == 1 and f"--{option} " in done.err and "must be between 1 and" in done.err, done
    assert net.xdp("eth0") is None


def test_capacities_are_fixed_at_creation_and_shown(net):
    net.attach("eth0", "--services", 100, "--addresses", 10, "--pools", 5, "--backends", 20, "--flows", 1000)
    want = {"services": 100, "addresses": 10, "pools": 5, "backends": 20, "flows": 1000}
    assert net.status()["lb"]["capacities"] == want
    net.attach("eth0", "--backends", 20)
    done = net.loader("attach", "eth0", "--backends", 21)
    assert done.code == 1 and f"shunt-loader upgrade --instance {net.instance} --backends 21" in done.err
    assert net.status()["lb"]["capacities"] == want


def test_status_of_what_is_not_there(net):
    done = net.loader("status")
    assert done.code == 1 and "there is no instance" in done.err
    done = net.loader("status", "-j")
    assert done.code == 1 and done.err == ""
    error = json.loads(done.out)
    assert error["error"] == "NotFound" and net.instance in error["message"]
    done = net.loader("status", "-j", "--frobnicate")
    assert done.code == 2 and json.loads(done.out)["error"] == "Usage"
    done = net.loader("status", "-j", "extra")
    assert done.code == 2 and json.loads(done.out)["error"] == "Usage"


def test_status_for_people_and_for_programs_agree(net):
    net.attach("eth0", "--pools", 7)
    text, lb = net.loader("status").out, net.status()["lb"]
    link = net.interfaces()["eth0"]
    for part in (f"instance {net.instance}", "eth0", "native", f"program {link['program_id']}", link["program_tag"],
                 "0 of 7 in use", "none published"):
        assert part in text, text
    assert lb["memory_bytes"] > 0 and lb["memory_per_cpu_bytes"] > 0
    assert f"{lb['memory_bytes'] / 2**20:.1f} MiB" in text


def test_status_of_all_instances_lists_ours(net):
    net.attach("eth0")
    everything = json.loads(net.run("a", LOADER, "status", "-j").out)
    assert net.instance in [i["instance"] for i in everything["instances"]]


def test_status_of_an_instance_that_cannot_be_read_hides_no_other(net):
    net.attach("eth0")
    name = net.new_instance()
    broken = net.pins.parent / name / "v1"
    broken.mkdir(parents=True)
    (net.pins / "v1" / "ifaces").rename(broken / "meta")
    everything = json.loads(net.run("a", LOADER, "status", "-j").out)["instances"]
    found = {i["instance"]: i for i in everything}
    assert "is not of shunt" in found[name]["problem"] and "cannot" in found[net.instance]["problem"]
    text = net.run("a", LOADER, "status")
    assert text.code == 0 and f"instance {name}: {broken}/meta is not of shunt" in text.out
