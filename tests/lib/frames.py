# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whole frames, tags included, in and out of an interface of another network namespace."""

import ctypes
import os
import socket
import struct
import time
from contextlib import contextmanager

from lab import NETNS

CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
SOL_PACKET, PACKET_AUXDATA, PACKET_OUTGOING = 263, 8, 4
TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
AUXDATA = struct.Struct("=IIIHHHH")

libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(netns):
    """This thread in another network namespace for a while: sockets made there stay there."""
    with open("/proc/thread-self/ns/net", "rb") as home, open(NETNS / netns, "rb") as there:
        enter(there)
        try:
            yield
        finally:
            enter(home)


def enter(namespace):
    if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Wire:
    """A packet socket on an interface of a lab's node."""

    def __init__(self, lab, node, interface):
        with inside(lab.netns(node)):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind((interface, ETH_P_ALL))

    def send(self, frame):
        self.socket.send(bytes(frame))

    def frames(self, seconds, outgoing=False):
        """Frames that come in (or, outgoing, that the node's stack sends) until `seconds` have passed."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                data, control, _, sender = self.socket.recvmsg(65536, 256)
            except TimeoutError:
                return
            if (sender[2] == PACKET_OUTGOING) == outgoing:
                yield with_tag(data, control)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def with_tag(data, control):
    """The kernel takes the outermost tag out of received frames and tells it beside: put it back."""
    for level, kind, value in control:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, *_, tci, tpid = AUXDATA.unpack(value[:AUXDATA.size])
            if status & TP_STATUS_VLAN_VALID:
                tpid = tpid if status & TP_STATUS_VLAN_TPID_VALID else 0x8100
                return data[:12] + struct.pack(">HH", tpid, tci) + data[12:]
    return data
