# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two network namespaces, a veth pair between them, and an instance, all with names of their own."""

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import BUILD, PINS

LOADER = BUILD / "shunt-loader"
PASS = BUILD / "tests/bpf/pass.bpf.o"
COUNT = itertools.count()


class Done:
    """A finished command."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.text = done.stdout + done.stderr

    def __repr__(self):
        return f"exit {self.code}\n{self.out}\n{self.err}"


def run(*argv, **options):
    return Done(subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False, timeout=120,
                               **options))


class Net:
    """`a` is where the loader runs: its eth0 leads to eth0 in `b`."""

    def __init__(self):
        self.name = f"ldr{os.getpid()}-{next(COUNT)}"
        self.spaces = {}
        self.instances = set()
        self.instance = self.new_instance()
        self.add_space("a")
        self.add_space("b")
        self.add_pair("eth0")

    def new_instance(self):
        name = f"{self.name}-{len(self.instances)}"
        self.instances.add(name)
        return name

    def add_space(self, key):
        self.spaces[key] = f"{self.name}-{key}"
        self.must(run("ip", "netns", "add", self.spaces[key]))
        self.sh(key, "ip link set lo up")

    def add_pair(self, link, near="a", far="b"):
        self.must(run("ip", "link", "add", link, "netns", self.spaces[near], "type", "veth", "peer", "name", link,
                      "netns", self.spaces[far]))
        for key in (near, far):
            self.sh(key, f"ip link set {link} up")

    @staticmethod
    def must(done):
        assert done.code == 0, done
        return done

    def argv(self, key, *argv):
        return ["nsenter", f"--net=/run/netns/{self.spaces[key]}", "--", *(str(a) for a in argv)]

    def run(self, key, *argv, **options):
        return run(*self.argv(key, *argv), **options)

    def sh(self, key, script):
        return self.must(self.run(key, "sh", "-euc", script)).out

    def loader(self, *words, instance=None, space="a", before=(), env=None):
        """shunt-loader with the words, in this instance; `before`: a command in front of it."""
        return self.run(space, *before, LOADER, *words, "--instance", instance or self.instance,
                        env={**os.environ, **(env or {})})

    def attach(self, *words, **options):
        return self.must(self.loader("attach", *words, **options))

    def status(self, instance=None):
        return json.loads(self.must(self.loader("status", "-j", instance=instance)).out)["instances"][0]

    def interfaces(self, instance=None):
        return {i["interface"]: i for i in self.status(instance)["interfaces"]}

    def xdp(self, interface, space="a"):
        """What iproute2, which is not ours, says is attached: (mode, program id), or None."""
        link = json.loads(self.sh(space, f"ip -j link show {interface}"))[0].get("xdp")
        return ({1: "native", 2: "generic"}[link["mode"]], link["prog"]["id"]) if link else None

    @property
    def pins(self):
        return PINS / self.instance

    def map_ids(self):
        """Of every map that is pinned, inner ones too."""
        ids = set()
        for path in self.pins.rglob("*"):
            if path.is_file() and path.parent.name not in ("links", "calls"):
                ids.add(json.loads(run("bpftool", "-j", "map", "show", "pinned", path).out)["id"])
        return ids

    def tail_calls(self):
        """Ids of the programs whose tail calls are kept."""
        folder = self.pins / "calls"
        return sorted(int(p.name) for p in folder.iterdir()) if folder.exists() else []

    def down(self):
        for space in self.spaces.values():
            run("ip", "netns", "del", space)
        for instance in self.instances:
            shutil.rmtree(PINS / instance, ignore_errors=True)
            Path(f"/run/shunt/{instance}.lock").unlink(missing_ok=True)


@pytest.fixture
def net():
    made = Net()
    yield made
    made.down()


def exists(kind, number):
    """Whether the kernel still has the map or prog of this id."""
    return run("bpftool", kind, "show", "id", number).code == 0


def program_of(text):
    return int(re.search(r"program (\d+)", text).group(1))
