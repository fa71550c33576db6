# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What breaks the way of clients takes a backend out in time, and brings it back in time; others notice nothing."""

import os
import signal
import time

import pytest
from balancer import Load, wait_for
from conftest import INTERVAL, OUT_WITHIN
from http_server import start_http
from lab import BUILD


def decap(lab, on):
    if on:
        lab.attach_decap("b1")
    else:
        lab.run("b1", BUILD / "shunt-loader", "detach", "eth0", "--instance", lab.instance("b1"))


def listener(lab, on):
    if on:
        start_http(lab, {"b1": "b1"})
        return
    pid_file = lab.dir / "b1/nginx.pid"
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    wait_for("nginx has ended", lambda: not pid_file.exists())


def script(node, off, on):
    return lambda lab, back: lab.sh(node, on if back else off)


FAULTS = {
    "service_address": script("b1", "ip address del 192.0.2.10/32 dev lo", "ip address add 192.0.2.10/32 dev lo"),
    "service_address_ipv6": script("b1", "ip address del 2001:db8::10/128 dev lo",
                                   "ip address add 2001:db8::10/128 dev lo"),
    "decapsulation": decap,
    "listener": listener,
    "route_back": script("b1", "ip route del default", "ip route add default via 10.1.0.1"),
    # The bridge follows its ports, until it is told.
    "full_size": script("router", "ip link set b1 mtu 1500; ip link set switch mtu 1600", "ip link set b1 mtu 1600"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_out_in_time_and_back_in_time(checked, fault):
    lab, sh = checked.lab, checked.shunt
    checked.apply(**({"packet-size": 1500} if fault == "full_size" else {}))
    owners = sh.owners()
    with Load(lab, lab.service(), "--hold", "0", "--concurrency", "4", "--timeout", "3") as load:
        time.sleep(0.2)
        FAULTS[fault](lab, False)
        try:
            row = checked.wait_out()
        finally:
            FAULTS[fault](lab, True)
        assert row["state"] == row["health"] == "down" and row["health_why"]
        checked.wait_back()
        results = load.finish()["requests"]
    assert len(results) > 100
    client = lab.address("client")
    failed = {owners[sh.slot(client, port, lab.service(), 80, len(owners))] for port, _, error, *_ in results
              if error and port}
    assert failed <= {"b1"}
    epoch = sh.ctl("epoch", "list", "web")["epochs"]
    assert any("health: web/b1" in e["why"] for e in epoch)


def test_a_small_packet_does_not_see_a_small_mtu(checked):
    checked.apply()
    FAULTS["full_size"](checked.lab, False)
    try:
        time.sleep(OUT_WITHIN + INTERVAL)
        assert checked.rows()["b1"]["health"] == "up"
    finally:
        FAULTS["full_size"](checked.lab, True)


def test_http_looks_at_status_and_body(checked):
    checked.apply(type="http", host="www.example", match="b")
    checked.write(type="http", path="/files/none")
    checked.shunt.ctl("reload")
    wait_for("all are down", lambda: all(r["health"] == "down" for r in checked.rows().values()), 10)
    rows = checked.rows()
    assert all("HTTP status 404" in r["health_why"] for r in rows.values())
    # None would be left: all serve, and it is said.
    assert all(r["slots"] for r in rows.values())
    assert "too many to believe" in " ".join(checked.shunt.ctl("status")["problems"])
    checked.apply()


def test_reload_keeps_the_health_of_the_same_check(checked):
    checked.apply()
    before = {name: row["health_passed"] for name, row in checked.rows().items()}
    checked.shunt.ctl("reload")
    after = checked.rows()
    assert all(after[name]["health_passed"] >= n and after[name]["health"] == "up" for name, n in before.items())


def test_five_of_six_at_once_freeze(checked):
    checked.apply()
    rest = [b for b in checked.lab.backends if b != "b6"]
    for b in rest:
        checked.lab.sh(b, "ip address del 192.0.2.10/32 dev lo")
    try:
        wait_for("five are down", lambda: sum(r["health"] == "down" for r in checked.rows().values()) == 5, 10)
        # Verdicts that come together are judged together, a little later.
        wait_for("they are not believed",
                 lambda: any("too many to believe" in p for p in checked.shunt.ctl("status")["problems"]), 5)
        wait_for("all serve", lambda: all(r["slots"] for r in checked.rows().values()), 2)
    finally:
        for b in rest:
            checked.lab.sh(b, "ip address add 192.0.2.10/32 dev lo")
    checked.all_up()
    wait_for("nothing is wrong", lambda: not checked.shunt.ctl("status")["problems"], 5)


def test_one_failing_one_check_in_three_stays(checked):
    """A hook counts: the lab's faults last longer than one check."""
    lab, sh = checked.lab, checked.shunt
    hooks, counts = lab.dir / "hooks-of-three", lab.dir / "counts"
    hooks.mkdir(mode=0o755)
    counts.mkdir()
    counts.chmod(0o777)  # hooks run as nobody
    (hooks / "third").write_text(f"#!/bin/sh\n[ $SHUNT_BACKEND = b1 ] || exit 0\necho >>{counts}/n\n"
                                 f"[ $(($(wc -l <{counts}/n) % 3)) != 0 ]\n")
    (hooks / "third").chmod(0o755)
    sh.stop()
    sh.options = ["--hooks-dir", hooks]
    checked.write(type="exec", hook="third")
    sh.start()
    checked.all_up()
    digest, before = sh.pool()["digest"], checked.rows()["b1"]
    wait_for("b1 failed five times", lambda: checked.rows()["b1"]["health_failed"] >= before["health_failed"] + 5, 20)
    row = checked.rows()["b1"]
    assert row["health"] == "up" and row["health_changes"] == before["health_changes"] and sh.pool()["digest"] == digest
    assert row["health_passed"] > 1.5 * row["health_failed"]


def test_a_flapping_backend_settles(checked):
    """Down again soon after it came up: held down, each time for twice as long, while its checks pass."""
    checked.apply(**{"hold-down": "1s", "hold-down-max": "1m"})
    held = []
    for _ in range(4):
        FAULTS["service_address"](checked.lab, False)
        row = checked.wait_out()
        held.append(row["health_hold_down"])
        FAULTS["service_address"](checked.lab, True)
        if held[-1] > 2:
            wait_for("its checks pass", lambda: "flaps" in checked.rows()["b1"]["health_why"], 5)
            assert checked.rows()["b1"]["slots"] == 0
            break
        checked.wait_back(within=10)
    assert held[0] == 0 and held == sorted(held) and held[-1] > 2, held
    wait_for("it comes back in the end", lambda: checked.rows()["b1"]["slots"] > 0, 15)


def test_a_killed_daemon_finds_its_way_and_its_verdicts_again(checked):
    checked.apply()
    lab, sh = checked.lab, checked.shunt
    lab.sh("b1", "ip address del 192.0.2.10/32 dev lo")
    try:
        checked.wait_out()
        digest = sh.pool()["digest"]
        sh.kill()
        sh.start(wait=False)
        wait_for("shuntd answers", lambda: checked_rows(checked))
        assert sh.pool()["digest"] == digest and checked.rows()["b1"]["health"] == "down"
        wait_for("others are up", lambda: sum(r["health"] == "up" for r in checked.rows().values()) == 5, 10)
        assert sh.pool()["digest"] == digest
        rules = lab.sh("lb", "ip rule") + lab.sh("lb", "ip -6 rule")
        assert rules.count("fwmark") == 2 and lab.sh("lb", "ip -o link").count("shuntp") == 2
    finally:
        lab.sh("b1", "ip address add 192.0.2.10/32 dev lo")
    checked.wait_back()


def checked_rows(checked):
    try:
        return checked.rows()
    except Exception:  # noqa: BLE001  not there yet
        return None


def test_nothing_stays_behind(checked):
    checked.shunt.stop()
    assert "fwmark" not in checked.lab.sh("lb", "ip rule; ip -6 rule")
    assert "shuntp" not in checked.lab.sh("lb", "ip -o link")
