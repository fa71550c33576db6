# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tshark as a decoder that knows nothing of shunt."""

import struct
import subprocess

# Malformed above these is no concern of ours: what tests send to port 53 is no DNS.
LAYERS = {"eth", "ethertype", "vlan", "arp", "ip", "ipv6", "ipv6.hopopts", "ipv6.dstopts", "ipv6.routing", "ipv6.fraghdr",
          "tcp", "udp", "icmp", "icmpv6"}
CHECKED = ("ip", "tcp", "udp", "icmp", "icmpv6")
LINKTYPE_ETHERNET = 1


def write_pcap(path, frames):
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, LINKTYPE_ETHERNET))
        for number, frame in enumerate(frames):
            out.write(struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame)


def complaints(path, timeout=120):
    """{number of a frame, from 0: what is wrong with it} of a capture: malformed, or a wrong checksum at any depth."""
    bad = " || ".join(["_ws.malformed"] + [f"{name}.checksum.status == 0" for name in CHECKED])
    fields = ["frame.number", "_ws.malformed", "frame.protocols"] + [f"{name}.checksum.status" for name in CHECKED]
    argv = ["tshark", "-n", "-r", path, "-Y", bad, "-T", "fields"]
    argv += [word for field in fields for word in ("-e", field)]
    argv += [word for name in ("ip", "tcp", "udp") for word in ("-o", f"{name}.check_checksum:TRUE")]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=timeout)
    out = {}
    for line in done.stdout.splitlines():
        number, malformed, protocols, *states = line.split("\t")
        layers = protocols.split(":")
        # A quote is cut; tshark sums what is there.
        summed = CHECKED if not {"icmp", "icmpv6"} & set(layers) else {"ip", "icmp", "icmpv6"}
        wrong = [f"{name} checksum" for name, state in zip(CHECKED, states) if name in summed and "0" in state.split(",")]
        if malformed and layers[-1] in LAYERS:
            wrong.insert(0, "malformed")
        if wrong:
            out[int(number) - 1] = ", ".join(wrong)
    return out
