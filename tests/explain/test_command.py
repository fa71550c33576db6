# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command: the same decision as the real program's, files in and out, bad input, and its members in the man page."""

import json
import re
import struct

import pytest
from cases import (BY_SOURCE, CLIENT, CLIENT6, LOCAL, NETWORK, NOBODY, ODD, TUNNEL, TUNNEL_PORTS, WWW, WWW6, ether, ip4,
                   ip6, tcp, udp)
from conftest import MICRO, NANO, explain, pcap, read_pcap, shuntctl
from kernel import INTERFACES, TOP, Kernel, difference
from packets_conftest import TIGHT
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

MAN = (TOP / "docs/shuntctl.8.rst").read_text()
ACTIONS = ["aborted", "drop", "pass", "tx", "redirect"]

# Words, and what Scapy makes of them; the client's MAC address is that of shuntctl.
WORDS = [
    (["tcp", f"{CLIENT}:40000", f"{WWW}:80"], IP(src=CLIENT, dst=WWW, flags="DF", id=0) / TCP(sport=40000, dport=80)),
    (["udp", f"{CLIENT}:40000", f"{WWW}:53", "--length", "61"],
     IP(src=CLIENT, dst=WWW, flags="DF", id=0) / UDP(sport=40000, dport=53) / bytes(33)),
    (["tcp", f"[{CLIENT6}]:40000", f"[{WWW6}]:7000", "--ack", "--length", "1300"],
     IPv6(src=CLIENT6, dst=WWW6) / TCP(sport=40000, dport=7000, flags="A") / bytes(1240)),
    (["udp", f"[{CLIENT6}]:40000", f"[{WWW6}]:7000"], IPv6(src=CLIENT6, dst=WWW6) / UDP(sport=40000, dport=7000)),
    (["tcp", f"{CLIENT}:40000", f"{WWW}:9000", "--vlan", "7"],
     Dot1Q(vlan=7) / IP(src=CLIENT, dst=WWW, flags="DF", id=0) / TCP(sport=40000, dport=9000)),
    (["tcp", f"{CLIENT}:40000", f"{BY_SOURCE}:1", "--fragmentable", "--ttl", "2"],
     IP(src=CLIENT, dst=BY_SOURCE, id=0, ttl=2) / TCP(sport=40000, dport=1)),
    (["tcp", f"{CLIENT}:40000", f"{WWW}:80", "--ttl", "1"],
     IP(src=CLIENT, dst=WWW, flags="DF", id=0, ttl=1) / TCP(sport=40000, dport=80)),
    (["tcp", f"{CLIENT}:40000", f"{ODD}:82", "--length", "1390"],
     IP(src=CLIENT, dst=ODD, flags="DF", id=0) / TCP(sport=40000, dport=82) / bytes(1350)),
    (["tcp", f"{CLIENT}:40000", f"{ODD}:80"], IP(src=CLIENT, dst=ODD, flags="DF", id=0) / TCP(sport=40000, dport=80)),
    (["tcp", f"{CLIENT}:40000", f"{WWW}:81"], IP(src=CLIENT, dst=WWW, flags="DF", id=0) / TCP(sport=40000, dport=81)),
    (["tcp", f"{CLIENT}:40000", f"{LOCAL}:81"], IP(src=CLIENT, dst=LOCAL, flags="DF", id=0) / TCP(sport=40000, dport=81)),
    (["udp", f"{CLIENT}:40000", f"{NOBODY}:53"], IP(src=CLIENT, dst=NOBODY, flags="DF", id=0) / UDP(sport=40000, dport=53)),
]


def made(packet):
    """The frame that shuntctl should make: sequence 1 and the largest window, which Scapy does not set."""
    frame = Ether(src="02:00:00:00:00:01", dst=INTERFACES["in"]) / packet
    if TCP in frame:
        frame[TCP].seq, frame[TCP].window = 1, 65535
    return bytes(frame)


def keys_in(value):
    if isinstance(value, dict):
        return set(value).union(*map(keys_in, value.values()))
    return set().union(*map(keys_in, value)) if isinstance(value, list) else set()


@pytest.fixture(scope="module")
def one():
    """shuntctl loads what the frame needs; the program beside it takes all frames."""
    with Kernel(TIGHT) as kernel:
        kernel.load("lb", True)
        kernel.apply(NETWORK)
        yield kernel


@pytest.mark.parametrize("words, packet", WORDS, ids=[" ".join(words) for words, _ in WORDS])
def test_words_are_explained_as_the_program_treats_their_packet(one, tmp_path, words, packet):
    before = one.ask("digest")
    decision = explain(one, *words, "-w", tmp_path / "out.pcap")
    assert one.ask("digest") == before
    counted = one.counters()
    (action, frame), = one.run([made(packet)])
    changes = difference(counted, one.counters())
    assert decision["verdict"]["action"] == ACTIONS[action]
    assert [("reason", decision["verdict"]["reason"])] == [key for key in changes if key[0] == "reason"]
    if ACTIONS[action] == "drop":
        assert decision["output"] is None and not (tmp_path / "out.pcap").exists()
    else:
        assert decision["output"]["hex"] == frame.hex()
        assert read_pcap((tmp_path / "out.pcap").read_bytes()) == [frame]
    for name in (name for kind, name in changes if kind == "backend"):
        assert decision["backend"]["id"] == one.ask("counters")["backends"][name]["id"]


def test_every_member_is_in_the_man_page(one):
    shown = set().union(*(keys_in(explain(one, *words)) for words, _ in WORDS))
    shown |= keys_in(explain(one, "icmp", CLIENT, WWW)) | keys_in(explain(one, "icmp", CLIENT6, WWW6))
    assert {"verdict", "steering", "checksum_right", "sentences"} <= shown
    section = MAN[MAN.index("JSON OUTPUT"):]
    assert [key for key in sorted(shown) if f"**{key}**" not in section and not re.search(rf"^{key}$", section, re.M)] == []


def test_for_people_it_is_sentences_and_the_packet(one):
    done = shuntctl(one, "explain", "--interface", "in", "tcp", f"{CLIENT}:40000", f"{WWW}:80")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Interface in does not have the program of this instance: ")
    assert lines[1] == f"The packet is tcp from {CLIENT}:40000 to {WWW}:80."
    assert re.fullmatch(r"It is for service number \d+\.", lines[2])
    assert "\nVerdict: tx, counted as forward_tx. " in done.stdout
    assert len(re.findall(r"^  ipv4 .*checksum_right=yes$", done.stdout, re.M)) == 2


def test_the_outer_source_of_a_prefix_is_that_of_the_packet(one):
    port = TUNNEL_PORTS["spread4"]
    said = {}
    for source in range(40000, 40020):
        decision = explain(one, "tcp", f"{CLIENT}:{source}", f"{TUNNEL}:{port}")
        outer = next(layer for layer in decision["output"]["layers"] if layer["layer"] == "ipv4")["source"]
        said[outer] = f"What goes there is encapsulated with ipip, from {outer} to 10.1.0.76."
        assert said[outer] in decision["sentences"]
    assert len(said) > 1


# ---- captures ----

FIRST, SECOND = bytes(ether() / ip4() / tcp()), bytes(ether() / ip6() / udp())


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("magic", [MICRO, NANO], ids=["micro", "nano"])
def test_captures_of_either_byte_order_and_precision(one, tmp_path, order, magic):
    path = tmp_path / "in.pcap"
    path.write_bytes(pcap(FIRST, SECOND, order=order, magic=magic))
    for options, frame, index in (([], FIRST, 1), (["--index", "2"], SECOND, 2),
                                  (["udp", f"[{CLIENT6}]:40000", f"[{WWW6}]:53"], SECOND, 2)):
        decision = explain(one, "--packet", path, *options)
        assert decision["input"] == {"interface": "in", "attached": False, "bytes": len(frame), "frags": False,
                                     "file": str(path), "index": index}
        assert decision["output"]["hex"] == one.run([frame])[0][1].hex()


def test_a_frame_of_several_segments(one, tmp_path):
    path = tmp_path / "in.pcap"
    path.write_bytes(pcap(bytes(ether() / ip4() / tcp(payload=bytes(8000)))))
    decision = explain(one, "--packet", path)
    assert decision["input"]["frags"] and decision["verdict"]["reason"] == "forward_tx"
    assert decision["output"]["bytes"] == 14 + 20 + 40 + 8000
    assert "does not fit one buffer" in decision["sentences"][1]


@pytest.mark.parametrize("packet, reason", [
    (ip4() / tcp(dport=81), "drop_unknown_port"), (ip4() / tcp(dataofs=3), "drop_l4_header"),
    (ip4(src=WWW) / tcp(), "drop_source")], ids=lambda value: value if isinstance(value, str) else "")
def test_a_service_is_missed_only_where_one_was_looked_for(one, tmp_path, packet, reason):
    path = tmp_path / "in.pcap"
    path.write_bytes(pcap(bytes(ether() / packet)))
    decision = explain(one, "--packet", path)
    assert decision["verdict"]["reason"] == reason
    missed = "The destination is a service address, but no service of it has this port." in decision["sentences"]
    assert missed == (reason == "drop_unknown_port")


NG = struct.pack("<II", 0x0A0D0D0A, 28) + bytes(20)
BAD_FILES = [
    (None, [], "cannot open"), (b"", [], "ends within its header"), (b"x" * 24, [], "is no pcap file"),
    (NG, [], "is a pcapng file"), (pcap(FIRST, link=113), [], "link type 113, not Ethernet"),
    (pcap(), [], "has 0 packets, and no number 1"), (pcap(FIRST), ["--index", "2"], "has 1 packets, and no number 2"),
    (pcap(FIRST)[:-1], [], "ends within packet 1"), (pcap(FIRST)[:30], [], "ends within the header of packet 1"),
    (pcap(FIRST, captured=40), [], f"40 of {len(FIRST)} bytes"),
    (pcap()[:24] + struct.pack("<IIII", 0, 0, 1 << 30, 1 << 30), [], "the file is damaged"),
    (pcap(FIRST)[:24] + struct.pack("<IIII", 0, 0, 60, 50) + bytes(60), [], "the file is damaged"),
    (pcap(bytes(13)), [], "a frame of 13 bytes"), (pcap(bytes(70000)), [], "a frame of 70000 bytes"),
    (pcap(FIRST), ["tcp", f"{CLIENT}:1", f"{WWW}:80"], "none of its 1 packets is of this flow"),
]


@pytest.mark.parametrize("content, options, says", BAD_FILES, ids=[says for _, _, says in BAD_FILES])
def test_a_bad_file_is_exit_1_and_one_sentence(one, tmp_path, content, options, says):
    path = tmp_path / "in.pcap"
    if content is not None:
        path.write_bytes(content)
    done = shuntctl(one, "-j", "explain", "--interface", "in", "--packet", path, *options)
    assert (done.returncode, done.stderr) == (1, "")
    assert says in json.loads(done.stdout)["message"]


BAD = [
    (["--interface", "nope"], "there is no interface nope"),
    ([], "no interface of this network namespace has the program"),
    (["--interface", "in", "-w", "/nonexistent/out.pcap"], "cannot write /nonexistent/out.pcap"),
]


@pytest.mark.parametrize("options, says", BAD, ids=[says for _, says in BAD])
def test_what_cannot_be_is_exit_1_and_one_sentence(one, options, says):
    done = shuntctl(one, "explain", "tcp", f"{CLIENT}:40000", f"{WWW}:80", *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"shuntctl: .*{says}.*\n", done.stderr)


def test_an_instance_that_is_not_there(one):
    done = shuntctl(one, "--instance", "explain-none", "explain", "tcp", f"{CLIENT}:40000", f"{WWW}:80")
    assert done.returncode == 1 and "there is no instance explain-none" in done.stderr
