# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tshark as a decoder that knows nothing of shunt."""

import re
import signal
import struct
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

# Malformed above these is no concern of ours: what tests send to port 53 is no DNS.
LAYERS = {"eth", "ethertype", "vlan", "arp", "ip", "ipv6", "ipv6.hopopts", "ipv6.dstopts", "ipv6.routing", "ipv6.fraghdr",
          "tcp", "udp", "icmp", "icmpv6"}
CHECKED = ("ip", "tcp", "udp", "icmp", "icmpv6")
LINKTYPE_ETHERNET = 1
# Packets are judged one by one: streams are put together for nobody.
OPTIONS = ("ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "udp.check_checksum:TRUE",
           "tcp.analyze_sequence_numbers:FALSE", "tcp.desegment_tcp_streams:FALSE")
# Linux writes the other zero of one's complement, in TCP too: tshark counts that as wrong.
ZERO = ("tcp.checksum", "tcp.checksum_calculated")
GUE = Path(__file__).with_name("gue.lua")
ROOM = {"-B": 64, "-C": 256 << 20, "-N": 1_000_000}  # MiB, bytes and frames; of a whole upload none is to be lost


def write_pcap(path, frames):
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, LINKTYPE_ETHERNET))
        for number, frame in enumerate(frames):
            out.write(struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame)


@contextmanager
def captured(lab, node, interfaces, path):
    """All frames on a node's interfaces, both ways, in a file when the block ends; it fails if one was lost."""
    argv = ["dumpcap", "-q", "-w", path] + [word for option in ROOM.items() for word in option]
    argv += [word for name in interfaces for word in ("-i", name)]
    process = lab.popen(node, *argv, stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        # The last that it says before it captures.
        while "File: " not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        yield
        # What it still holds when it is asked to end is lost; it writes twice a second.
        written = None
        while written != path.stat().st_size:
            written = path.stat().st_size
            time.sleep(0.7)
    finally:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=20)[1]
    assert set(re.findall(r"received/dropped on interface .*: \d+/(\d+) ", said)) == {"0"}, said


class Watch:
    """The first frames that pass a node, in a file, for judged(); where many more pass, some of them are lost."""

    def __init__(self, lab, node, interfaces, path, frames=15000):
        self.path = path
        argv = ["dumpcap", "-q", "-w", path, "-B", ROOM["-B"], "-a", f"packets:{frames}"]
        self.process = lab.popen(node, *argv, *(word for name in interfaces for word in ("-i", name)),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        """(complaints, frames of each stack) of what was seen."""
        if self.process.poll() is None:
            time.sleep(0.7)  # it writes twice a second, and loses what it holds
            self.process.send_signal(signal.SIGINT)
        self.process.wait(20)
        return judged(self.path)


def complaints(path, timeout=120):
    """{number of a frame, from 0: what is wrong with it} of a capture: malformed, or a wrong checksum at any depth."""
    return judged(path, timeout=timeout)[0]


def judged(path, gue_port=6080, timeout=120):
    """complaints(), and how many frames there are of each stack of protocols ("eth:ethertype:ip:udp:gue:ip:tcp")."""
    fields = ["_ws.malformed", "frame.protocols", *ZERO] + [f"{name}.checksum.status" for name in CHECKED]
    argv = ["tshark", "-n", "-r", path, "-X", f"lua_script:{GUE}", "-d", f"udp.port=={gue_port},gue", "-T", "fields"]
    argv += [word for field in fields for word in ("-e", field)]
    argv += [word for option in OPTIONS for word in ("-o", option)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=timeout)
    out, stacks = {}, Counter()
    for number, line in enumerate(done.stdout.splitlines()):
        malformed, protocols, written, computed, *states = line.split("\t")
        layers = protocols.split(":")
        stacks[protocols] += 1
        # A quote is cut; tshark sums what is there.
        summed = CHECKED if not {"icmp", "icmpv6"} & set(layers) else {"ip", "icmp", "icmpv6"}
        if (written, computed) == ("0xffff", "0x0000"):
            summed = set(summed) - {"tcp"}
        wrong = [f"{name} checksum" for name, state in zip(CHECKED, states) if name in summed and "0" in state.split(",")]
        if (malformed and layers[-1] in LAYERS) or layers[-1] == "gue":
            wrong.insert(0, "malformed")
        if wrong:
            out[number] = ", ".join(wrong)
    return out, stacks
