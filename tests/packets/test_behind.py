# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Errors about packets of ours, of both outer families, with GUE and without, from an address and from a prefix."""

import struct

import pytest

from answers import too_big
from behind import known, mapped
from cases import TUNNEL, TUNNEL_PORTS, ether, ip4, tcp
from kernel import XDP_DROP, XDP_PASS, XDP_TX, difference

# What is counted for the encapsulation: for GUE with room for optional fields.
HEADERS = {"spread4": 20, "spread6": 40, "gue4": 52, "gue6": 72}
LEAST = {4: 552, 6: 1280}
PREFIXES = {"spread4": struct.pack("<I", 96 + 24) + mapped("10.77.3.0"),
            "spread6": struct.pack("<I", 64) + mapped("fd00:77:0:5::")}


def treated(kernel, frame):
    """(action, counters that changed, frame) of one frame."""
    before = kernel.counters()
    ((action, after),) = kernel.run([frame])
    return action, difference(before, kernel.counters()), after


@pytest.fixture(params=list(HEADERS))
def way(request, balancer):
    with known(balancer, request.param, PREFIXES.get(request.param)) as way:
        way.pool = request.param
        assert treated(balancer, way.frame)[2] == way.sent
        yield way


@pytest.mark.parametrize("told", [0, 1, 551, 552, 553, 1279, 1280, 1281, 8999, 9000, 9001, 65535])
def test_the_path_mtu_is_the_told_one_but_not_below_the_least(balancer, way, told):
    frame = way.error(told)
    assert treated(balancer, frame) == (XDP_DROP, {("reason", "drop_path_error"): 1}, bytes(frame))
    taken = min(max(told, LEAST[way.backend.family]), 9000) if told else 9000
    assert way.state() == (taken, 1, taken < 9000)


def test_clients_are_told_of_it(balancer, way):
    treated(balancer, way.error(1400))
    fits = 1400 - HEADERS[way.pool]
    whole, big = (ether() / ip4(TUNNEL) / tcp(TUNNEL_PORTS[way.pool], payload=bytes(size - 40)) for size in (fits, fits + 1))
    assert treated(balancer, whole)[:1] == (XDP_TX,)
    assert treated(balancer, big) == (XDP_TX, {("reason", "answer_too_big"): 1}, too_big(big, fits))


@pytest.mark.parametrize("size", [0, 7])
def test_a_quote_without_eight_bytes_behind_the_outer_header_is_the_hosts(balancer, way, size):
    frame = way.error(1300, size=(40 if way.backend.family == 6 else 20) + size)
    assert treated(balancer, frame) == (XDP_PASS, {("reason", "pass_not_service"): 1}, bytes(frame))
    assert way.state() == (9000, 0, False)


def other(way, at, value):
    return way.outer[:at] + value + way.outer[at + len(value) :]


def test_what_quotes_another_encapsulation_is_the_hosts(balancer, way):
    six = way.backend.family == 6
    header = 40 if six else 20
    quotes = [other(way, 6 if six else 9, bytes([protocol])) for protocol in (6, 47)]
    if "gue" in way.pool:
        quotes += [other(way, header + 2, struct.pack(">H", port)) for port in (53, 6081)]
        quotes.append(other(way, 6 if six else 9, b"\4"))
    else:
        quotes.append(other(way, 6 if six else 9, b"\x11"))
    for quote in quotes:
        frame = way.error(1300, quote)
        assert treated(balancer, frame) == (XDP_PASS, {("reason", "pass_not_service"): 1}, bytes(frame))
    assert way.state() == (9000, 0, False)
