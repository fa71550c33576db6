# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What shunt sends by itself, whole frames by Scapy: echo replies, ICMP errors, resets."""

from scapy.layers.inet import ICMP, IP, TCP
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6)
from scapy.packet import Raw
from scapy.utils import checksum

from fleet import patched, split

QUOTE4, QUOTE6 = 576 - 20 - 8, 1280 - 40 - 8  # RFC 1812, 4.3.2.3; RFC 4443, 2.4


def turned(link):
    """A link header on its way back: the addresses change places, tags stay."""
    return link[6:12] + link[:6] + link[12:]


def addresses(packet):
    """(source, destination, family) as text."""
    header = IPv6(packet) if packet[0] >> 4 == 6 else IP(packet)
    return header.src, header.dst, header.version


def echo_reply(frame):
    """The request itself with the addresses swapped, another type, a fresh TTL; padding stays.

    Good for fragments too: the checksum, of the whole datagram, changes with the type alone.
    """
    link, packet, padding = split(bytes(frame))
    if packet[0] >> 4 == 6:
        reply = bytearray(packet[:7] + b"\x40" + packet[24:40] + packet[8:24] + packet[40:])
        at, kind, offset = 40, reply[6], 0
        while kind != 58:
            if kind == 44:
                offset = int.from_bytes(reply[at + 2 : at + 4], "big") >> 3
            kind, at = reply[at], at + (8 if kind == 44 else reply[at + 1] * 8 + 8)
        change = (128, 129)
    else:
        at, offset = (packet[0] & 15) * 4, int.from_bytes(packet[6:8], "big") & 0x1FFF
        reply = bytearray(patched(packet, 8, 64))
        reply[12:20] = packet[16:20] + packet[12:16]
        change = (8, 0)
    if offset == 0:
        assert reply[at] == change[0]
        reply[at] = change[1]
        was = int.from_bytes(reply[at + 2 : at + 4], "big")
        # One's complement arithmetic; of its two zeros 0xffff is always right, 0 not for a message of zeros alone.
        reply[at + 2 : at + 4] = ((was + (change[0] - change[1] << 8)) % 0xFFFF or 0xFFFF).to_bytes(2, "big")
    return turned(link) + bytes(reply) + padding


def icmp_error(frame, message4, message6, first=None):
    """An error about the frame from the address it went to, from zero.  first: bytes of the frame's first segment."""
    link, packet, _ = split(bytes(frame))
    here = len(packet) if first is None else min(first - len(link), len(packet))
    source, destination, family = addresses(packet)
    if family == 6:
        answer = IPv6(src=destination, dst=source, hlim=64) / message6 / Raw(packet[: min(QUOTE6, here)])
    else:
        answer = IP(src=destination, dst=source, id=0, flags="DF", ttl=64) / message4 / Raw(packet[: min(QUOTE4, here)])
    return turned(link) + bytes(answer)


def too_big(frame, mtu, first=None):
    return icmp_error(frame, ICMP(type=3, code=4, nexthopmtu=mtu), ICMPv6PacketTooBig(mtu=mtu), first)


def time_exceeded(frame):
    return icmp_error(frame, ICMP(type=11, code=0), ICMPv6TimeExceeded(code=0))


def port_unreachable(frame):
    return icmp_error(frame, ICMP(type=3, code=3), ICMPv6DestUnreach(code=4))


def reset(frame):
    """RFC 9293, section 3.10.7.1, for a connection that does not exist."""
    link, packet, _ = split(bytes(frame))
    source, destination, family = addresses(packet)
    segment = (IPv6(packet) if family == 6 else IP(packet))[TCP]
    length = len(segment.payload) + ("S" in segment.flags) + ("F" in segment.flags)
    if "A" in segment.flags:
        answer = TCP(seq=segment.ack, ack=0, flags="R")
    else:
        answer = TCP(seq=0, ack=(segment.seq + length) & 0xFFFFFFFF, flags="RA")
    answer.sport, answer.dport, answer.window = segment.dport, segment.sport, 0
    header = (IPv6(src=destination, dst=source, hlim=64) if family == 6 else
              IP(src=destination, dst=source, id=0, flags="DF", ttl=64))
    return turned(link) + bytes(header / answer)


def check_sums(frame):
    """Every checksum of an answer is right, computed anew: of IPv4 header, ICMP and TCP."""
    _, packet, _ = split(frame)
    if packet[0] >> 4 == 6:
        header, pseudo = 40, packet[8:40] + (len(packet) - 40).to_bytes(4, "big") + bytes(3) + packet[6:7]
    else:
        header = (packet[0] & 15) * 4
        assert checksum(packet[:header]) == 0
        pseudo = packet[12:20] + b"\0" + packet[9:10] + (len(packet) - header).to_bytes(2, "big")
        if packet[9] == 1:
            pseudo = b""
    assert checksum(pseudo + packet[header:]) in (0, 0xFFFF)
