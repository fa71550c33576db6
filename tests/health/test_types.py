# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The other types of checks, down the data path and direct."""

import os
import subprocess
import time

import pytest
from balancer import wait_for

ANSWER = """
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.setsockopt(socket.IPPROTO_IPV6, 49, 1)
s.setsockopt(socket.IPPROTO_IP, 8, 1)
s.bind(("::", int(sys.argv[1])))
while True:
    # From the address that was asked: UDP does not do so by itself.
    data, control, _, peer = s.recvmsg(2048, 256)
    if sys.argv[2] == "dns":
        data = data[:2] + bytes([0x81, 0x80, 0, 1, 0, 1]) + data[6:] + bytes.fromhex("c00c000100010000003c0004c0000263")
    s.sendmsg([data], control, 0, peer)
"""


def verdicts(checked, what):
    return wait_for(f"all are {what}", lambda: (rows := checked.rows()) and all(
        r["health"] == what for r in rows.values()) and rows, 10)


@pytest.mark.parametrize("kind, keys", (("udp", {"send": "well?", "match": "well"}), ("dns", {"query": "a.example"})))
def test_datagrams(checked, kind, keys):
    checked.write(type=kind, port=5353, **keys)
    checked.shunt.ctl("reload")
    rows = verdicts(checked, "down")
    assert all("refused" in r["health_why"] or "no answer" in r["health_why"] for r in rows.values())
    servers = [checked.lab.popen(b, "/usr/bin/python3", "-c", ANSWER, "5353", kind, stdin=subprocess.DEVNULL)
               for b in checked.lab.backends]
    try:
        verdicts(checked, "up")
    finally:
        for server in servers:
            server.kill()
            server.wait()


def test_direct_does_not_see_the_service_address(checked):
    checked.apply(**{"check-via": "direct"})
    checked.lab.sh("b1", "ip address del 192.0.2.10/32 dev lo")
    try:
        before = checked.rows()["b1"]["health_passed"]
        wait_for("it is checked", lambda: checked.rows()["b1"]["health_passed"] > before + 4)
        assert checked.rows()["b1"]["health"] == "up"
    finally:
        checked.lab.sh("b1", "ip address add 192.0.2.10/32 dev lo")


def test_hooks_are_roots_and_run_as_nobody(checked):
    hooks = checked.lab.dir / "hooks"
    hooks.mkdir(mode=0o755)
    hook = hooks / "ask"
    hook.write_text("#!/bin/sh\n[ $(id -u) = 65534 ] && [ $(id -G) = 65534 ] && [ $SHUNT_BACKEND != b1 ]\n")
    checked.shunt.stop()
    checked.write(type="exec", hook="ask")
    argv = ["nsenter", f"--net=/run/netns/{checked.lab.netns('lb')}", "--"]
    with open(checked.shunt.log, "a", encoding="utf-8") as log:
        from lab import BUILD
        checked.shunt.process = subprocess.Popen(
            [*argv, BUILD / "shuntd", "-c", checked.shunt.config, "--instance", checked.shunt.instance, "--state-dir",
             checked.shunt.dir / "state", "--hooks-dir", hooks], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    checked.shunt.wait_ready()
    # A hook that cannot be run says nothing about backends: they go on as they are.
    wait_for("it is said", lambda: all("chmod 755" in r["health_why"] for r in checked.rows().values()))
    assert all(r["slots"] for r in checked.rows().values())
    assert any("6 backends cannot be checked" in p for p in checked.shunt.ctl("status")["problems"])
    os.chmod(hook, 0o755)
    wait_for("five are up", lambda: sum(r["health"] == "up" for r in checked.rows().values()) == 5)
    assert "exit status 1" in checked.rows()["b1"]["health_why"]
    before = {name: (r["health"], r["slots"]) for name, r in checked.rows().items()}
    os.chmod(hook, 0o777)
    wait_for("it is said", lambda: all("nobody else can write" in r["health_why"] for r in checked.rows().values()))
    time.sleep(2)
    assert {name: (r["health"], r["slots"]) for name, r in checked.rows().items()} == before
