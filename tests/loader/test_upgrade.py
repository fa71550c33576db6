# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs and capacities replaced under traffic, and what an interrupted run leaves."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest
from conftest import BUILD, exists, run

FLOOD = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sent, until = 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    for _ in range(20):
        sock.sendto(sent.to_bytes(8, "big"), ("10.9.0.1", 9))
        sent += 1
    time.sleep(0.001)
print(sent)
"""


class Receiver(threading.Thread):
    """Counts what arrives in namespace a on port 9."""

    def __init__(self, net):
        super().__init__()
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{net.spaces['a']}", os.O_RDONLY)
        libc = __import__("ctypes").CDLL(None, use_errno=True)
        assert libc.setns(there, 0) == 0
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        assert libc.setns(home, 0) == 0
        os.close(home)
        os.close(there)
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        self.sock.bind(("10.9.0.1", 9))
        self.sock.settimeout(1.0)
        self.seen = set()

    def run(self):
        try:
            while True:
                self.seen.add(int.from_bytes(self.sock.recv(16), "big"))
        except socket.timeout:
            self.sock.close()


def flooded(net, change, seconds=6.0):
    """Run `change` while packets arrive; how many were sent, and how many of them never arrived."""
    net.sh("a", "ip address add 10.9.0.1/24 dev eth0")
    net.sh("b", "ip address add 10.9.0.2/24 dev eth0")
    assert net.run("b", "ping", "-c", 1, "-W", 1, "10.9.0.1").code == 0
    receiver = Receiver(net)
    sender = subprocess.Popen(net.argv("b", sys.executable, "-c", FLOOD, seconds), stdout=subprocess.PIPE, text=True)
    receiver.start()
    time.sleep(0.2)
    change()
    still = sender.poll() is None
    sent = int(sender.communicate(timeout=60)[0])
    receiver.join()
    assert still, "the change took longer than the traffic"
    return sent, sent - len(receiver.seen)


def test_no_packet_is_lost_when_the_program_is_replaced(net):
    net.attach("eth0")

    def change():
        for _ in range(5):
            net.must(net.loader("upgrade"))
    sent, lost = flooded(net, change)
    assert sent > 10000 and lost == 0
    assert net.status()["lb"]["counters"]["pass_no_config"] >= sent


def test_no_packet_is_lost_when_the_maps_are_replaced(net):
    net.attach("eth0")
    before = net.map_ids()

    def change():
        net.must(net.loader("upgrade", "--backends", 20000))
        net.must(net.loader("upgrade", "--backends", 16384, "--pools", 2000))
    sent, lost = flooded(net, change)
    assert sent > 10000 and lost == 0
    lb = net.status()["lb"]
    assert (lb["capacities"]["backends"], lb["capacities"]["pools"], lb["serial"]) == (16384, 2000, 3)
    # What was counted between the copy and the switch is not carried over: a few packets at most.
    counted = lb["counters"]["pass_no_config"]
    assert sent * 0.95 < counted <= sent + 100
    # The flow table, whose size was not changed, serves both sets; of the others the old ones are gone.
    kept = before & net.map_ids()
    assert len(kept) == 1 and not any(exists("map", i) for i in before - kept)


def test_replaced_programs_and_maps_are_freed(net, tmp_path):
    """From one set of objects to another and back, 50 times: by id, what was replaced is gone from the kernel."""
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(BUILD / "shunt.bpf.o", other)
    net.attach("eth0")
    first, programs = net.map_ids(), set()
    for i in range(50):
        env = {"SHUNT_OBJECT_DIR": str(other)} if i % 2 else {}
        programs.add(net.xdp("eth0")[1])
        net.must(net.loader("upgrade", env=env))
    assert net.map_ids() == first
    maps = set()
    for backends in (100, 200) * 3:
        maps |= net.map_ids()
        programs.add(net.xdp("eth0")[1])
        net.must(net.loader("upgrade", "--backends", backends))
    assert len(programs) == 56 and net.xdp("eth0")[1] not in programs
    assert not any(exists("prog", i) for i in programs)
    # The flow table is taken over by each new set.
    assert len(maps & net.map_ids()) == 1
    assert not any(exists("map", i) for i in maps - net.map_ids())
    assert len(net.map_ids()) == len(first)


def test_nothing_to_upgrade(net):
    done = net.loader("upgrade")
    assert done.code == 1 and "has no maps" in done.err
    assert not net.pins.exists()


def test_equal_capacities_rebuild_nothing(net):
    net.attach("eth0", "--backends", 50)
    before = net.map_ids()
    net.must(net.loader("upgrade", "--backends", 50))
    assert net.map_ids() == before and net.status()["lb"]["serial"] == 1


def test_without_interfaces(net):
    net.attach("eth0", "--backends", 50)
    net.must(net.loader("detach", "eth0"))
    net.must(net.loader("upgrade", "--backends", 60))
    assert net.status()["lb"]["capacities"]["backends"] == 60


def test_a_load_that_fails_leaves_the_old_set_in_force(net, tmp_path):
    """The objects are broken: found out when the new maps are there already."""
    net.attach("eth0", "--backends", 50)
    maps, program = net.map_ids(), net.xdp("eth0")
    (tmp_path / "shunt.bpf.o").write_bytes(b"broken")
    for words in (("upgrade",), ("upgrade", "--backends", 60)):
        done = net.loader(*words, env={"SHUNT_OBJECT_DIR": str(tmp_path)})
        assert done.code == 1 and "is no BPF object" in done.err
        assert net.map_ids() == maps and net.xdp("eth0") == program
        assert net.status()["lb"]["capacities"]["backends"] == 50 and not net.status()["upgrade_interrupted"]
        assert [p.name for p in sorted(net.pins.iterdir())] == ["calls", "links", "v1"]


def put_backend(net, index):
    net.sh("a", f"bpftool map update pinned {net.pins}/v1/backends key {' '.join(map(str, index.to_bytes(4, 'little')))} "
                f"value {' '.join(['3'] + ['0'] * 63)}")


def test_what_is_in_use_must_fit(net):
    net.attach("eth0", "--backends", 50)
    put_backend(net, 40)
    done = net.loader("upgrade", "--backends", 40)
    assert done.code == 1 and "--backends is too small for what is in use: at least 41" in done.err
    assert net.status()["lb"]["capacities"]["backends"] == 50 and net.status()["lb"]["used"]["backends"] == 1
    net.must(net.loader("upgrade", "--backends", 41))
    assert net.status()["lb"]["capacities"]["backends"] == 41 and net.status()["lb"]["used"]["backends"] == 1


@pytest.mark.parametrize("role", [(), ("--role", "decap")], ids=["lb", "decap"])
def test_an_interface_on_maps_that_are_pinned_no_more_is_said(net, role):
    net.attach("eth0", *role)
    assert not net.interfaces()["eth0"]["stale"] and "other maps" not in net.loader("status").out
    for folder in net.pins.glob("*v1"):
        shutil.rmtree(folder)
    net.add_pair("eth1")
    net.attach("eth1", *role)  # makes new maps
    assert {name: i["stale"] for name, i in net.interfaces().items()} == {"eth0": True, "eth1": False}
    said = net.loader("status").out
    assert f"runs on other maps than those that are pinned: `shunt-loader upgrade --instance {net.instance}`" in said
    net.must(net.loader("upgrade"))
    assert not any(i["stale"] for i in net.interfaces().values())


def test_links_in_other_namespaces_are_upgraded_too(net):
    net.attach("eth0")
    net.attach("eth0", space="b")
    before = net.xdp("eth0", "b")
    assert "2 interfaces run" in net.must(net.loader("upgrade", "--backends", 99)).out
    assert net.xdp("eth0", "b")[1] != before[1] and net.xdp("eth0", "b")[0] == "native"


def test_one_that_waits_for_the_lock_gives_up(net):
    net.attach("eth0")
    holder = subprocess.Popen(["flock", f"/run/shunt/{net.instance}.lock", "sleep", "60"])
    try:
        time.sleep(0.2)
        start = time.monotonic()
        done = net.loader("upgrade")
        assert done.code == 1 and "held the lock" in done.err and time.monotonic() - start < 15
    finally:
        subprocess.run(["pkill", "-P", str(holder.pid)], check=False)
        holder.kill()
        holder.wait()


# ---- kill -9 at any step ----

# Every call that changes something the kernel keeps.  strace kills the program as it enters its N-th of them.
CALLS = "bpf,rename,renameat2,mkdir,unlink,unlinkat,rmdir,sendto"


def count_calls(net, words):
    trace = f"/tmp/{net.name}.trace"
    net.must(net.loader(*words, before=["strace", "-f", "-o", trace, "-e", f"trace={CALLS}"]))
    with open(trace, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if re.match(r"\d+ +(" + CALLS.replace(",", "|") + r")\(", line)]
    os.unlink(trace)
    return lines


def kill_at(net, words, call, number):
    return net.loader(*words, before=["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                                      f"inject={call}:signal=KILL:when={number}"])


def points(lines, most):
    """Some (call, its number among its kind): each that changes a link or renames, and `most` spread over the rest."""
    count, always, rest = {}, [], []
    for line in lines:
        call = re.match(r"\d+ +(\w+)\(", line).group(1)
        count[call] = count.get(call, 0) + 1
        (always if "BPF_LINK" in line or "rename" in call else rest).append((call, count[call]))
    # Updates and queries of elements come by the hundred; what makes and removes is what matters.
    making = [p for p in rest if p[0] != "bpf"]
    calls = [p for p in rest if p[0] == "bpf"]
    return always + making[::max(1, 2 * len(making) // most)] + calls[::max(1, 2 * len(calls) // most)]


def settled(net, capacity):
    """The instance is whole: one set of maps, of this capacity, on which the interface's program runs."""
    status = net.status()
    assert not status["upgrade_interrupted"] and status["lb"]["capacities"]["backends"] == capacity
    assert sorted(p.name for p in net.pins.iterdir()) == ["calls", "links", "v1"]
    assert len(list((net.pins / "links").iterdir())) == 1
    number = net.xdp("eth0")[1]
    assert net.tail_calls() == [number]
    program = json.loads(run("bpftool", "-j", "prog", "show", "id", number).out)
    pinned, used = net.map_ids(), set(program["map_ids"])
    own = [json.loads(run("bpftool", "-j", "map", "show", "id", number).out)["name"] for number in used - pinned]
    assert used & pinned
    # Constants, scratch and tail calls: a second set of maps would have other names.
    assert own and all(".rodata" in name or name.startswith("scratch_") or name == "calls" for name in own)


def test_attach_killed_anywhere_is_repaired(net):
    lines = count_calls(net, ("attach", "eth0", "--backends", "50"))
    assert len(lines) > 50
    for call, number in points(lines, 12):
        net.must(net.loader("detach", "eth0"))  # a link whose pin is removed is freed some time later
        shutil.rmtree(net.pins)
        kill_at(net, ("attach", "eth0", "--backends", "50"), call, number)
        net.attach("eth0", "--backends", "50")
        settled(net, 50)


def test_upgrade_killed_anywhere_is_repaired(net):
    net.attach("eth0", "--backends", "50")
    put_backend(net, 7)
    sizes = {50: 60, 60: 50}
    size = 50
    lines = count_calls(net, ("upgrade", "--backends", "60"))
    size = 60
    for call, number in points(lines, 10):
        before = net.xdp("eth0")
        kill_at(net, ("upgrade", "--backends", sizes[size]), call, number)
        assert net.xdp("eth0")[0] == before[0]  # never without a program
        net.must(net.loader("upgrade"))
        size = net.status()["lb"]["capacities"]["backends"]
        assert size in sizes
        settled(net, size)
        assert net.status()["lb"]["used"]["backends"] == 1


def test_detach_killed_anywhere_is_repaired(net):
    net.attach("eth0", "--backends", "50")
    lines = count_calls(net, ("detach", "eth0"))
    for call, number in points(lines, 10):
        net.attach("eth0")
        kill_at(net, ("detach", "eth0"), call, number)
        net.must(net.loader("detach", "eth0"))
        assert net.xdp("eth0") is None and net.interfaces() == {}
        assert list((net.pins / "links").iterdir()) == [] and net.tail_calls() == []
