# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Start, stop, restart, and who may run beside whom."""

import os
import shutil
import signal
import socket
import subprocess
import time

import pytest
from rawcontrol import ask, error_of, in_force, pool
from shuntlab import BUILD, PINS, RUN, Shunt, backend, run, web


def run_daemon(shunt, *options):
    """shuntd that is expected to end by itself."""
    return subprocess.run(shunt.argv([BUILD / "shuntd", "--instance", shunt.instance, "--state-dir", shunt.state,
                                      *options]), capture_output=True, text=True, check=False, timeout=30)


def backends(shunt, name="web"):
    return {b["name"]: b for b in ask(shunt, "BackendList", pool=name)["backends"]}


def test_starts_publishes_and_stops(running):
    status = ask(running, "Status")
    assert status["healthy"] and status["problems"] == []
    assert status["instance"] == running.instance and status["pid"] == running.process.pid
    assert status["document"] == str(running.config) and status["state_dir"] == str(running.state)
    assert status["used"] == {"services": 2, "addresses": 2, "pools": 1, "backends": 2}
    assert {b["slots"] for b in backends(running).values()} == {2049, 2050}
    assert pool(running)["published"] and pool(running)["epoch"] == 1
    assert running.stop() == 0
    assert not (RUN / running.instance / "control.sock").exists()
    assert (PINS / running.instance).exists(), "pins stay: traffic goes on"
    running.process = None
    running.start()


def test_first_epoch_has_all_backends(shunt):
    """One epoch at start, not one a backend."""
    shunt.write(web(20))
    shunt.start()
    assert pool(shunt)["epoch"] == 1
    assert all(b["slots"] > 0 for b in backends(shunt).values())


def test_second_daemon_is_refused_with_the_pid_of_the_first(running):
    before = in_force(running)
    second = run_daemon(running, "-c", running.config)
    assert second.returncode == 1
    assert str(running.process.pid) in second.stderr
    assert in_force(running) == before


def test_stop_by_interrupt(running):
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(10) == 0
    running.process = None
    running.start()


def test_usage_errors_are_exit_2(shunt):
    for options in (["--no-such"], ["extra"], ["--backends", "x"], ["--backends", "0"], ["--log-level", "loud"]):
        done = run_daemon(shunt, *options)
        assert done.returncode == 2, (options, done)
        assert done.stderr
    assert not (PINS / shunt.instance).exists()


def test_version_and_help(shunt):
    assert run_daemon(shunt, "--version").stdout.startswith("shuntd ")
    assert "--state-dir" in run_daemon(shunt, "--help").stdout


def test_bad_instance_name_is_exit_1():
    with Shunt() as shunt:
        done = subprocess.run([BUILD / "shuntd", "--instance", "No/Good"], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "No/Good" in done.stderr, shunt.instance


def test_bad_document_without_state_is_exit_1(shunt):
    shunt.write("version: 1\npools: [}\n")
    done = run_daemon(shunt, "-c", shunt.config)
    assert done.returncode == 1
    assert f"{shunt.config}:2:" in done.stderr


@pytest.mark.parametrize("make", [lambda path: path.touch(), lambda path: path.symlink_to("/nonexistent/folder")],
                         ids=["file", "link to nowhere"])
def test_something_else_in_place_of_the_state_folder_is_named(shunt, make):
    make(shunt.state)
    done = run_daemon(shunt, "-c", shunt.config)
    assert done.returncode == 1
    assert f"the state directory {shunt.state} is no directory" in done.stderr and "--state-dir" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_missing_document_without_state_is_exit_1(shunt):
    done = run_daemon(shunt, "-c", shunt.dir / "none.yaml")
    assert done.returncode == 1 and "none.yaml" in done.stderr


def test_bad_document_with_state_keeps_the_state(running):
    before = in_force(running)
    running.stop()
    running.write("version: 1\nservices: 7\n")
    running.start()
    status = ask(running, "Status")
    assert not status["healthy"]
    assert any(str(running.config) in problem for problem in status["problems"]), status
    assert in_force(running) == before
    assert f"{running.config}:" in running.log_tail()


def test_a_file_that_is_applied_by_hand_is_in_force(running):
    text = running.config.read_text()
    running.write("version: 1\nservices: 7\n")
    assert running.ctl("reload").returncode == 1
    running.write(text + "# mended\n")
    assert running.ctl("plan", running.config).returncode == 0
    other = running.dir / "other.yaml"
    other.write_text(text + "# another\n")
    assert running.ctl("apply", other).returncode == 0
    assert "not in force" in ask(running, "Status")["problems"][0]
    assert running.ctl("apply", running.config).returncode == 0
    status = ask(running, "Status")
    assert status["problems"] == [] and not status["alarms"]["document"]


def test_starts_without_a_document(shunt):
    with open(shunt.log, "ab") as log:
        shunt.process = subprocess.Popen(shunt.argv([BUILD / "shuntd", "--instance", shunt.instance, "--state-dir",
                                                     shunt.state]), stdout=log, stderr=log)
    shunt.wait(lambda: (RUN / shunt.instance / "control.sock").exists(), "the socket")
    status = ask(shunt, "Status")
    assert not status["healthy"] and status["document"] is None
    shunt.stop()
    shunt.start()
    assert ask(shunt, "Status")["healthy"]


def test_verbs_survive_and_state_wins_while_the_file_is_unchanged(running):
    ask(running, "BackendSet", pool="web", name="web1", weight=7)
    ask(running, "BackendAdd", pool="web", name="web3", address=backend(3))
    before = in_force(running)
    for _ in range(2):
        running.stop()
        running.start()
        assert in_force(running) == before
        assert backends(running)["web1"]["weight"] == 7 and "web3" in backends(running)


def test_changed_file_is_applied_at_start_and_replaces_verbs(running):
    ask(running, "BackendAdd", pool="web", name="web3", address=backend(3))
    before = pool(running)["epoch"]
    running.stop()
    running.write(web(weights=[5, 1]))
    running.start()
    assert set(backends(running)) == {"web1", "web2"}
    assert backends(running)["web1"]["weight"] == 5
    assert pool(running)["epoch"] > before


def test_changed_key_counts_as_a_change(running):
    revision = ask(running, "Status")["revision"]
    running.stop()
    (running.dir / "hash.key").write_text("00112233445566778899aabbccddeeff\n")
    running.start()
    assert ask(running, "Status")["revision"] > revision


def test_sighup_applies_the_file(running):
    running.write(web(weights=[1, 3]))
    running.process.send_signal(signal.SIGHUP)
    running.wait(lambda: backends(running)["web2"]["weight"] == 3, "the file is applied")
    before = in_force(running)
    running.write("nonsense")
    running.process.send_signal(signal.SIGHUP)
    running.wait(lambda: not ask(running, "Status")["healthy"], "the bad file is reported")
    assert in_force(running) == before
    running.write(web(weights=[1, 3]))
    running.process.send_signal(signal.SIGHUP)
    running.wait(lambda: ask(running, "Status")["healthy"], "all is well again")
    assert in_force(running) == before


def test_reload_undoes_verbs(running):
    digest = pool(running)["digest"]
    ask(running, "BackendSet", pool="web", name="web1", weight=9)
    assert pool(running)["digest"] != digest
    assert ask(running, "Reload") == {"changed": True, "warnings": []}
    assert pool(running)["digest"] == digest
    assert ask(running, "Reload") == {"changed": False, "warnings": []}


def test_replacing_every_backend_leaves_no_gap(running):
    """The ways to new backends are known before the old ones go: one epoch, with all slots owned."""
    epoch = pool(running)["epoch"]
    document = web(4)
    document["pools"][0]["backends"] = document["pools"][0]["backends"][2:]
    running.write(document)
    assert ask(running, "Reload")["changed"]
    assert pool(running)["epoch"] == epoch + 1
    assert sum(b["slots"] for b in backends(running).values()) == 4099


def test_kill_9_twenty_times(running):
    """The epoch never goes down, the digest is the same, what was acknowledged is there."""
    epoch, digest = pool(running)["epoch"], pool(running)["digest"]
    for turn in range(20):
        weight = turn % 3 + 1
        if turn % 2:
            ask(running, "BackendSet", pool="web", name="web1", weight=weight)
            epoch, digest = pool(running)["epoch"], pool(running)["digest"]
        running.kill()
        running.start()
        now = pool(running)
        assert (now["epoch"], now["digest"]) == (epoch, digest), f"after kill {turn}"
        if turn % 2:
            assert backends(running)["web1"]["weight"] == weight


def test_kill_9_in_the_midst_of_changes(running):
    """Killed at any moment of a change, the daemon comes back with what was acknowledged, or with what was asked."""
    acknowledged = 1
    for turn in range(12):
        asked = 10 + turn
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(RUN / running.instance / "control.sock"))
            client.sendall(b'{"method": "shunt.control.BackendSet", "version": 1, "parameters": '
                           b'{"pool": "web", "name": "web1", "weight": %d}}\0' % asked)
            time.sleep(0.0007 * turn)
            running.kill()
            try:
                done = client.recv(100).endswith(b"\0")
            except ConnectionResetError:
                done = False
        running.start()
        weight = backends(running)["web1"]["weight"]
        assert weight == asked or (not done and weight == acknowledged)
        slots = backends(running)["web1"]["slots"]
        assert abs(slots - 4099 * weight / (weight + 1)) <= 1
        acknowledged = weight


def test_two_instances_do_not_see_each_other(running):
    with Shunt() as other:
        other.write(web(3))
        other.start()
        before = in_force(running)
        ask(other, "BackendSet", pool="web", name="web1", weight=9)
        assert in_force(running) == before
        assert set(backends(running)) == {"web1", "web2"} and set(backends(other)) == {"web1", "web2", "web3"}


def test_capacities_are_fixed_and_shown(shunt):
    shunt.start("--backends", "64", "--pools", "16")
    assert ask(shunt, "Status")["capacities"]["backends"] == 64
    shunt.stop()
    done = run_daemon(shunt, "--backends", "128")
    assert done.returncode == 1 and "shunt-loader upgrade" in done.stderr
    shunt.start()
    assert ask(shunt, "Status")["capacities"]["pools"] == 16


def test_an_interface_that_no_change_reaches_is_a_problem(running):
    def problems():
        return running.json("status")["problems"]

    loader = [BUILD / "shunt-loader", "--instance", running.instance]
    run(running.argv([loader[0], "attach", "eth0", *loader[1:]]))
    assert not problems() and running.json("status")["interfaces"][0]["stale"] is False
    shutil.rmtree(PINS / running.instance / "v1")
    running.json("backend", "set", "web/web1", "--weight", "3")
    assert running.json("status")["interfaces"][0]["stale"] is True
    assert f"shunt-loader upgrade --instance {running.instance}" in problems()[0] and "eth0" in problems()[0]
    run(running.argv([loader[0], "upgrade", *loader[1:]]))
    assert not problems()


def test_commands_in_messages_are_for_this_instance(shunt):
    """To be copied by night: without the name they would change another load balancer."""
    shunt.start("--flows", "1")
    error, message = error_of(shunt, "BackendSet", pool="web", name="web1", weight=9)
    assert (error, f"`shunt-loader upgrade --flows N --instance {shunt.instance}`" in message) == ("Full", True), message


def test_notifies_the_service_manager(shunt):
    path = shunt.dir / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(20)
        os.environ["NOTIFY_SOCKET"] = str(path)
        try:
            shunt.start()
        finally:
            del os.environ["NOTIFY_SOCKET"]
        assert manager.recv(1000) == b"READY=1"
        shunt.process.send_signal(signal.SIGHUP)
        assert manager.recv(1000).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert manager.recv(1000) == b"READY=1"
        shunt.stop()
        assert manager.recv(1000) == b"STOPPING=1"


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def switches(pid):
    lines = open(f"/proc/{pid}/status", encoding="ascii").read().splitlines()
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


def test_idle_daemon_sleeps(running):
    ask(running, "Status")
    time.sleep(6)  # the sweep of clients ends
    before, used = switches(running.process.pid), cpu_seconds(running.process.pid)
    time.sleep(3)
    assert switches(running.process.pid) - before <= 3
    assert cpu_seconds(running.process.pid) - used <= 0.02


def test_log_level_and_prefixes(shunt):
    shunt.start("--log-level", "error")
    assert shunt.log_tail() == ""
    shunt.stop()
    shunt.start()
    assert all(line.startswith(("<3>", "<4>", "<6>")) for line in shunt.log_tail().splitlines())


def test_needs_only_two_capabilities(shunt):
    """What docs/examples/shuntd.service leaves it."""
    argv = shunt.argv
    shunt.argv = lambda words: argv(["setpriv", "--no-new-privs", "--inh-caps", "-all", "--bounding-set",
                                     "-all,+bpf,+net_admin", *words])
    shunt.start()
    ask(shunt, "BackendAdd", pool="web", name="web3", address=backend(3))
    assert backends(shunt)["web3"]["slots"] > 0
    shunt.kill()
    shunt.start()
    assert backends(shunt)["web3"]["slots"] > 0


def test_maps_rebuilt_with_other_capacities_are_taken_over(running):
    ask(running, "BackendSet", pool="web", name="web1", weight=5)
    before = in_force(running)
    done = subprocess.run(running.argv([BUILD / "shunt-loader", "upgrade", "--instance", running.instance, "--backends",
                                        "4096"]), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert ask(running, "Status")["capacities"]["backends"] == 4096
    assert in_force(running) == before
    ask(running, "BackendAdd", pool="web", name="web3", address=backend(3))
    assert backends(running)["web3"]["slots"] > 0
