# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is sent, judged by tshark: it finds nothing wrong that it did not find in what came in."""

from all_cases import CASES
from cases import ether, ip4, tcp
from kernel import XDP_REDIRECT, XDP_TX
from tshark import complaints, write_pcap


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
