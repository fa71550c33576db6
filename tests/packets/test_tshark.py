# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is sent, judged by tshark: it finds nothing wrong that it did not find in what came in."""

from all_cases import CASES
from cases import ether, ip4, tcp, udp
from kernel import XDP_REDIRECT, XDP_TX
from tshark import complaints, write_pcap
from tshark import judged as judged_file


def judged(folder, name, frames):
    write_pcap(folder / name, frames)
    return complaints(folder / name)


def test_nothing_that_is_sent_is_malformed(balancer, tmp_path):
    cases = [case for case in CASES if not case.options and (balancer.frags or not case.frags)]
    results = balancer.run([case.frame for case in cases])
    sent = [(case, frame) for case, (action, frame) in zip(cases, results) if action in (XDP_TX, XDP_REDIRECT)]
    assert len(sent) > 250
    before = judged(tmp_path, "in.pcap", [bytes(case.frame) for case, _ in sent])
    after = judged(tmp_path, "out.pcap", [frame for _, frame in sent])
    worse = {sent[number][0].sentence: what for number, what in after.items() if before.get(number) != what}
    assert not worse


def test_tshark_sees_what_is_wrong(tmp_path):
    whole = bytes(ether() / ip4() / tcp())
    frames = [whole, whole[:-1] + b"\0", whole[:24] + b"\xff\xff" + whole[26:], whole[:40]]
    assert judged(tmp_path, "bad.pcap", frames) == {1: "tcp checksum", 2: "ip checksum", 3: "malformed"}


def test_tshark_sees_what_is_wrong_inside_gue(tmp_path):
    inner = bytes(ip4() / tcp() / b"data")
    headers = {"ip": b"\0\4\0\0", "ipv6": b"\0\x29\0\0", "control": b"\x20\4\0\0", "flags": b"\0\4\0\1"}
    payloads = [headers["ip"] + inner, headers["ip"] + inner[:-1] + b"A", headers["ip"] + inner[:30],
                headers["ipv6"] + inner, headers["control"] + inner, headers["flags"] + inner, headers["ip"][:2]]
    frames = [bytes(ether() / ip4() / udp(dport=5555, payload=payload)) for payload in payloads]
    write_pcap(tmp_path / "gue.pcap", frames)
    wrong, stacks = judged_file(tmp_path / "gue.pcap", gue_port=5555)
    assert wrong.pop(1) == "tcp checksum"
    assert wrong == dict.fromkeys((2, 3, 4, 5, 6), "malformed")
    assert len([stack for stack in stacks.elements() if stack.startswith("eth:ethertype:ip:udp:gue:ip:tcp")]) == 3
    # Of another port it is just data.
    assert judged_file(tmp_path / "gue.pcap")[0] == {}


def test_either_zero_is_a_right_checksum(tmp_path):
    # The word that makes the sum whole.
    packet = bytes(ether() / ip4() / tcp(payload=bytes(ip4() / tcp(payload=b"\0\0"))[36:38]))
    assert packet[50:52] == b"\0\0"
    other = packet[:50] + b"\xff\xff" + packet[52:]
    wrong = other[:-1] + bytes([other[-1] ^ 1])
    assert judged(tmp_path, "zero.pcap", [packet, other, wrong]) == {2: "tcp checksum"}
