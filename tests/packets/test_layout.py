# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every shared type has one layout, by the BTF of the BPF objects and by that of the C compiler."""

import json
import os
import re
import subprocess

import pytest

from kernel import BUILD, TOP

HEADERS = ("types.h", "wire.h")
DEFINITION = re.compile(r"^(struct|union|enum) (shunt_\w+) \{", re.MULTILINE)
OBJECTS = ("shunt.bpf.o", "shunt_decap.bpf.o")
INCLUDE = ["-I", str(TOP / "include"), "-isystem", f"/usr/include/{os.uname().machine}-linux-gnu"]


def shared():
    """[(kind, name)] of everything that the headers define."""
    return [found for header in HEADERS for found in DEFINITION.findall((TOP / "include/shunt" / header).read_text())]


class Btf:
    def __init__(self, path):
        dump = subprocess.run(["bpftool", "-j", "btf", "dump", "file", path], check=True, capture_output=True, text=True)
        self.types = {entry["id"]: entry for entry in json.loads(dump.stdout)["types"]}

    def size(self, type_id):
        entry = self.types.get(type_id, {})
        if entry.get("kind") == "ARRAY":
            return entry["nr_elems"] * self.size(entry["type_id"])
        if entry.get("kind") in ("TYPEDEF", "CONST", "VOLATILE", "RESTRICT"):
            return self.size(entry["type_id"])
        if entry.get("kind") == "PTR":
            raise AssertionError("a pointer in a shared type")
        return entry.get("size", 0)

    def layouts(self):
        """{(kind, name): (size, members or values)} of the shared types that are there."""
        out = {}
        for entry in self.types.values():
            name = entry.get("name", "")
            if not name.startswith("shunt_"):
                continue
            if entry["kind"] in ("STRUCT", "UNION"):
                members = [(m["name"], m["bits_offset"], self.size(m["type_id"])) for m in entry["members"]]
                out[entry["kind"].lower(), name] = (entry["size"], members)
            elif entry["kind"] == "ENUM":
                values = [(v["name"], v["val"] & 0xFFFFFFFF) for v in entry["values"]]
                out["enum", name] = (entry["size"], values)
        return out


@pytest.fixture(scope="module")
def compilers(tmp_path_factory):
    """The layouts by gcc and by clang for BPF, of a file with one variable of each shared type."""
    folder = tmp_path_factory.mktemp("layout")
    source = folder / "shared.c"
    source.write_text("".join(f"#include <shunt/{header}>\n" for header in HEADERS) +
                      "".join(f"{kind} {name} a_{name};\n" for kind, name in shared()))
    subprocess.run(["gcc", "-gbtf", *INCLUDE, "-c", source, "-o", folder / "gcc.o"], check=True)
    subprocess.run(["clang", "-target", "bpf", "-g", "-O2", *INCLUDE, "-c", source, "-o", folder / "bpf.o"], check=True)
    return Btf(folder / "gcc.o").layouts(), Btf(folder / "bpf.o").layouts()


def test_the_headers_define_something():
    assert {("struct", "shunt_backend"), ("union", "shunt_address"), ("enum", "shunt_reason")} <= set(shared())


@pytest.mark.parametrize("kind,name", shared())
def test_both_compilers_agree(compilers, kind, name):
    gcc, bpf = compilers
    assert gcc[kind, name] == bpf[kind, name]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_objects_agree_with_the_c_compiler(compilers, name):
    gcc, _ = compilers
    found = {key: layout for key, layout in Btf(BUILD / name).layouts().items() if key in gcc}
    assert ("struct", "shunt_reasons") in found
    for key, layout in found.items():
        assert layout == gcc[key], key


def test_the_balancer_has_what_it_reads_in_maps():
    """Had the compiler dropped their BTF, the test above would pass without a look at them."""
    found = Btf(BUILD / "shunt.bpf.o").layouts()
    for name in ("backend", "iface", "stats", "reasons", "config"):
        assert ("struct", f"shunt_{name}") in found, name
