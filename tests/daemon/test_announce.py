# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Announcements: the routes of service addresses, in a table of their own."""

import json
import subprocess

import pytest
from shuntlab import BUILD, Shunt, run, web

TABLE = 100
OURS = 214  # rtm_protocol of our routes
BOTH = {"192.0.2.10", "2001:db8::10"}
FOREIGN = {("192.0.2.99", 4), ("198.51.100.0/24", 4), ("2001:db8:f::/48", 4)}


def document(backends=2, **announce):
    return {**web(backends), "announce": {"table": TABLE, **announce}}


def routes(shunt, table=TABLE):
    """(destination, protocol) of all routes of the table, each a blackhole or of somebody else's."""
    found = set()
    for family in ("-4", "-6"):
        done = subprocess.run(shunt.argv(["ip", "-N", "-j", family, "route", "show", "table", table]), check=False,
                              capture_output=True, text=True)
        # A table in which there never was a route is an error.
        for row in json.loads(done.stdout) if done.returncode == 0 and done.stdout else []:
            found.add((row["dst"], int(row["protocol"])))
    return found


def ours(shunt, table=TABLE):
    return {address for address, protocol in routes(shunt, table) if protocol == OURS}


def expect(shunt, addresses, table=TABLE):
    shunt.wait(lambda: ours(shunt, table) == set(addresses), f"{addresses} are announced in table {table}")


def attach(shunt, verb="attach"):
    run(shunt.argv([BUILD / "shunt-loader", verb, "eth0", "--instance", shunt.instance]))


def add_foreign(shunt):
    shunt.sh("ip route add blackhole 192.0.2.99 table 100 proto static\n"
             "ip route add 198.51.100.0/24 dev lo table 100 proto static\n"
             "ip -6 route add blackhole 2001:db8:f::/48 table 100 proto static\n")


def service(shunt, name):
    return shunt.json("service", "show", name)


@pytest.fixture
def shunt():
    """Attached, and not started."""
    with Shunt() as made:
        made.write(document())
        attach(made)
        yield made


@pytest.fixture
def running(shunt):
    yield shunt.start()
    assert shunt.process.poll() is None, f"shuntd ended by itself:\n{shunt.log_tail()}"


def test_each_address_has_one_route_and_says_so(running):
    expect(running, BOTH)
    assert running.json("status")["announce"] == {"table": TABLE, "hook": None, "when": "any", "addresses": 2,
                                                   "announced": 2}
    assert service(running, "www")["announced"] is True and service(running, "www")["announced_why"] == ""
    assert "announced     yes\n" in running.ctl("service", "show", "www6").stdout
    assert "announced  2 of 2 addresses, in table 100\n" in running.ctl("status").stdout
    assert 'shunt_service_announced{service="www"} 1\n' in running.ctl("metrics").stdout
    # Nothing is routed by it.
    assert "unreachable" in subprocess.run(running.argv(["ip", "route", "get", "192.0.2.10"]), check=False,
                                           capture_output=True, text=True).stderr.lower()


def test_a_pool_that_loses_its_last_backend_takes_its_addresses_back(running):
    expect(running, BOTH)
    for name in ("web1", "web2"):
        assert running.ctl("backend", "set", f"web/{name}", "--weight", "0").returncode == 0
    expect(running, set())
    row = service(running, "www")
    assert row["announced"] is False and row["announced_why"] == "pool web of service www has no backend with slots"
    assert "no: pool web of service www has no backend" in running.ctl("service", "show", "www").stdout
    check = running.ctl("status", "--check")
    assert check.returncode == 1
    assert "2 of 2 service addresses are not announced, the first: 2001:db8::10: pool web" in check.stdout \
        or "2 of 2 service addresses are not announced, the first: 192.0.2.10: pool web" in check.stdout
    assert 'shunt_service_announced{service="www"} 0\n' in running.ctl("metrics").stdout
    assert running.ctl("backend", "set", "web/web1", "--weight", "1").returncode == 0
    expect(running, BOTH)


@pytest.mark.parametrize("when", ["any", "all"])
def test_an_address_with_two_services(shunt, when):
    made = document(when=when)
    made["pools"].append({**made["pools"][0], "name": "empty", "backends": []})
    made["services"].append({"name": "mail", "address": "192.0.2.10", "protocol": "tcp", "ports": [25],
                             "pool": "empty"})
    shunt.write(made)
    shunt.start()
    expect(shunt, BOTH if when == "any" else {"2001:db8::10"})
    row = service(shunt, "www")
    assert row["announced"] is (when == "any")
    assert row["announced_why"] == ("" if when == "any" else "pool empty of service mail has no backend with slots")


@pytest.mark.parametrize("last", ["refuse", "fail-open"])
def test_when_all_backends_are_down_the_policy_says(shunt, last):
    made = document()
    made["pools"][0]["health"] = {"type": "tcp", "check-via": "direct", "port": 9, "interval": "300ms", "timeout": "200ms",
                                  "fall": 1, "panic": 100, "last-backend": last}
    shunt.write(made)
    shunt.start()
    # They serve until they have failed.
    shunt.wait(lambda: all(row["health"] == "down" for row in shunt.json("backend", "list")["backends"]), "all are down")
    expect(shunt, set() if last == "refuse" else BOTH)
    assert service(shunt, "www")["announced"] is (last == "fail-open")
    # And stay so: a look or two later nothing is different.
    shunt.wait(lambda: shunt.json("status")["uptime"] >= 4, "some time has passed")
    assert ours(shunt) == (set() if last == "refuse" else BOTH)


def test_what_is_exported_says_it(running):
    """Applied again it changes nothing."""
    expect(running, BOTH)
    text = running.ctl("export").stdout
    assert "announce" in text
    done = running.ctl("plan", "-", "--exit-code", stdin=text)
    assert done.returncode == 0, done.stdout + done.stderr


def test_services_come_and_go(running):
    expect(running, BOTH)
    assert running.ctl("service", "add", "more", "udp", "192.0.2.11:53", "--pool", "web").returncode == 0
    expect(running, BOTH | {"192.0.2.11"})
    assert running.ctl("service", "add", "other", "udp", "192.0.2.11:54", "--pool", "web").returncode == 0
    assert running.ctl("service", "del", "more").returncode == 0
    expect(running, BOTH | {"192.0.2.11"})
    assert running.ctl("service", "del", "other").returncode == 0
    expect(running, BOTH)


def test_a_route_that_somebody_deletes_comes_back_and_others_are_left_alone(running):
    expect(running, BOTH)
    add_foreign(running)
    running.sh("ip route del 192.0.2.10 table 100; ip -6 route del 2001:db8::10 table 100;"
               "ip route add blackhole 192.0.2.77 table 100 proto 214;"
               "ip route add blackhole 203.0.113.0/24 table 100 proto 214;"
               "ip -6 route add blackhole 2001:db8::/33 table 100 proto 214;"
               "ip route add blackhole 192.0.2.10 table 101 proto 214")
    expect(running, BOTH)
    assert {a for a, protocol in routes(running) if protocol == 4} == {a for a, _ in FOREIGN}
    assert ours(running, 101) == {"192.0.2.10"}, "another table is not ours"
    assert "was gone: it is put back" in running.log_tail()


def test_a_stop_leaves_the_routes_and_a_start_puts_them_right(shunt):
    shunt.start()
    expect(shunt, BOTH)
    assert shunt.stop() == 0
    assert ours(shunt) == BOTH
    add_foreign(shunt)
    shunt.sh("ip route del 192.0.2.10 table 100; ip route add blackhole 192.0.2.77 table 100 proto 214")
    shunt.start()
    expect(shunt, BOTH)
    assert {a for a, protocol in routes(shunt) if protocol == 4} == {a for a, _ in FOREIGN}


def test_kills_at_any_time_leave_what_is_right(shunt):
    """The weights go to 0 and back, the daemon is killed somewhere in between: the routes follow the tables."""
    shunt.start()
    expect(shunt, BOTH)
    for turn in range(6):
        for name in ("web1", "web2"):
            shunt.ctl("backend", "set", f"web/{name}", "--weight", str(turn % 2))
        shunt.kill()
        before = ours(shunt)
        assert before in (set(), BOTH, *({a} for a in BOTH))
        shunt.start()
        expect(shunt, BOTH if turn % 2 else set())


def test_another_table_and_none_at_all(shunt):
    """Also where the daemon was killed before it could clear the table that it leaves."""
    shunt.start()
    expect(shunt, BOTH)
    assert shunt.ctl("apply", "-", stdin=json.dumps({**document(), "hash-key": shunt.key,
                                                     "announce": {"table": 200}})).returncode == 0
    expect(shunt, BOTH, 200)
    expect(shunt, set())
    shunt.kill()
    shunt.sh("ip route add blackhole 192.0.2.10 table 200 proto 214 || true")
    shunt.write(web(2))
    shunt.start()
    expect(shunt, set(), 200)
    assert shunt.json("status")["announce"] is None
    assert service(shunt, "www")["announced"] is None
    assert json.loads((shunt.state / "announce.json").read_text()[17:])["tables"] == []


def test_without_the_program_nothing_is_announced(running):
    expect(running, BOTH)
    attach(running, "detach")
    expect(running, set())
    assert "on no interface" in service(running, "www")["announced_why"]
    attach(running)
    expect(running, BOTH)


def test_a_route_in_the_way_is_an_alarm_and_left_alone(shunt):
    shunt.sh("ip route add 192.0.2.10 dev lo table 100 proto static")
    shunt.start()
    expect(shunt, {"2001:db8::10"})
    status = shunt.json("status")
    assert status["alarms"]["announce"] is True and status["healthy"] is False
    assert any("a route that is not shunt's is in the way: ip route show table 100 192.0.2.10" in text
               for text in status["problems"])
    assert service(shunt, "www")["announced_why"] == "a route that is not shunt's is in the way"
    assert 'shunt_alarm{alarm="announce"} 1\n' in shunt.ctl("metrics").stdout
    shunt.sh("ip route del 192.0.2.10 table 100")
    expect(shunt, BOTH)
    shunt.wait(lambda: shunt.json("status")["alarms"]["announce"] is False, "the alarm is over")


def test_two_instances_cannot_have_one_table(running):
    expect(running, BOTH)
    other = Shunt()
    with other:
        subprocess.run(["ip", "netns", "del", other.netns], check=True)
        other.netns = running.netns
        try:
            other.write({**document(), "services": [{"name": "dns", "address": "192.0.2.53", "protocol": "udp",
                                                     "ports": [53], "pool": "web"}]})
            other.start()
            other.wait(lambda: other.json("status")["alarms"]["announce"] is True, "the other says so")
            assert any("table 100 is the announcements' of another instance" in text
                       for text in other.json("status")["problems"])
            assert ours(running) == BOTH
            assert running.stop() == 0
            other.stop()
            running.start()
        finally:
            other.stop()
            other.netns = "none"
    expect(running, BOTH)


def test_two_capabilities_are_enough(shunt):
    """What docs/examples/shuntd.service leaves the daemon."""
    argv = shunt.argv
    shunt.argv = lambda words: argv(["setpriv", "--no-new-privs", "--inh-caps", "-all", "--bounding-set",
                                     "-all,+bpf,+net_admin", *words])
    shunt.start()
    shunt.argv = argv
    expect(shunt, BOTH)
    attach(shunt, "detach")
    expect(shunt, set())
    attach(shunt)
    expect(shunt, BOTH)
    assert drain(shunt, "--wait-for", "0") and shunt.json("status")["self_drain"]["interfaces"] != []


def test_damage_of_what_is_kept_changes_nothing(shunt):
    shunt.start()
    expect(shunt, BOTH)
    assert shunt.stop() == 0
    kept = shunt.state / "announce.json"
    kept.write_text(kept.read_text().replace("100", "200"))
    shunt.sh("ip route del 192.0.2.10 table 100")
    shunt.start()
    assert ours(shunt) == {"2001:db8::10"}
    assert any("is damaged, so that announcements stay as they are" in text
               for text in shunt.json("status")["problems"])
    assert shunt.ctl("self", "undrain").returncode == 0
    expect(shunt, BOTH)
    assert shunt.json("status")["problems"] == []
    assert json.loads(kept.read_text()[17:])["tables"] == [TABLE]


# ---- self drain ----

def mode(shunt):
    """Of the program on eth0, or None."""
    rows = shunt.json("status")["interfaces"]
    return rows[0]["mode"] if rows else None


def drain(shunt, *args):
    done = shunt.ctl("self", "drain", *args)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("how", ["native", "generic"])
def test_a_drain_withdraws_detaches_and_stays_until_it_is_undone(shunt, how):
    if how == "generic":
        attach(shunt, "detach")
        run(shunt.argv([BUILD / "shunt-loader", "attach", "eth0", "--mode", how, "--instance", shunt.instance]))
    shunt.start()
    expect(shunt, BOTH)
    said = drain(shunt, "--wait-for", "0", "--reason", "new disks")
    assert "eth0: detached" in said and "drained" in said
    assert (ours(shunt), mode(shunt)) == (set(), None)
    for turn in range(3):
        status = shunt.json("status")
        assert status["self_drained"] is True and status["healthy"] is True, status["problems"]
        assert status["self_drain"]["interfaces"] == [{"interface": "eth0", "mode": how}]
        assert status["self_drain"]["user"] == "root" and status["self_drain"]["why"].endswith("new disks")
        assert shunt.ctl("status", "--check").returncode == 0
        assert "DRAINED    since" in shunt.ctl("status").stdout
        assert "shunt_self_drained 1\n" in shunt.ctl("metrics").stdout
        assert "is drained" in service(shunt, "www")["announced_why"]
        assert ours(shunt) == set()
        if turn < 2:
            shunt.kill(9 if turn else 15)
            shunt.start()
    assert shunt.ctl("self", "undrain").returncode == 0
    expect(shunt, BOTH)
    assert mode(shunt) == how
    assert shunt.json("status")["self_drain"] is None
    shunt.kill()
    shunt.start()
    expect(shunt, BOTH)


def test_the_program_stays_until_the_wait_is_over_and_a_second_drain_goes_on(running):
    expect(running, BOTH)
    args = running.argv([BUILD / "shuntctl", "--instance", running.instance, "self", "drain", "--wait-for", "60"])
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as first:
        assert "No address is announced" in first.stdout.readline()
        assert ours(running) == set() and mode(running) == "native" and first.poll() is None
        first.kill()
    running.kill()
    running.start()
    assert running.json("status")["self_drained"] is True
    assert ours(running) == set() and mode(running) == "native"
    reply = running.json("self", "drain", "--wait-for", "0")
    assert reply["detached"] == ["eth0"] and reply["announced"] == reply["late_packets"] == 0
    # Once more: there is nothing left to detach, and what is to be attached again is not forgotten.
    assert running.json("self", "drain", "--wait-for", "0")["detached"] == []
    assert running.ctl("self", "undrain").returncode == 0
    expect(running, BOTH)
    assert mode(running) == "native"


def test_one_that_is_taken_back_while_it_waits_detaches_nothing(running):
    expect(running, BOTH)
    args = running.argv([BUILD / "shuntctl", "--instance", running.instance, "self", "drain", "--wait-for", "4"])
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first:
        assert "No address is announced" in first.stdout.readline()
        assert running.ctl("self", "undrain").returncode == 0
        _, errors = first.communicate(timeout=60)
    assert first.returncode == 1 and "was taken back meanwhile" in errors
    expect(running, BOTH)
    assert mode(running) == "native"


def test_an_interface_that_is_gone_does_not_hinder_the_way_back(running):
    expect(running, BOTH)
    running.sh("ip link add gone type veth peer name gone1; ip link set gone up; ip link set gone1 up")
    run(running.argv([BUILD / "shunt-loader", "attach", "gone", "--instance", running.instance]))
    drain(running, "--wait-for", "0")
    running.sh("ip link del gone")
    done = running.ctl("self", "undrain")
    assert done.returncode == 0 and "gone had the program, and is gone" in done.stderr
    expect(running, BOTH)
    assert mode(running) == "native"


def test_what_cannot_be_drained_is_left_as_it_is(running):
    expect(running, BOTH)
    (running.state / "announce.json.new").mkdir()
    refused = running.ctl("self", "drain", "--wait-for", "0")
    assert refused.returncode == 1 and "announce.json" in refused.stderr
    (running.state / "announce.json.new").rmdir()
    argv = running.argv(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", BUILD / "shuntctl",
                         "--instance", running.instance, "self", "drain"])
    refused = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert refused.returncode == 1 and "as root" in refused.stderr
    assert running.json("status")["self_drained"] is False
    assert ours(running) == BOTH and mode(running) == "native"


def test_without_announcements_there_is_nothing_to_drain(shunt):
    shunt.write(web(2))
    shunt.start()
    done = shunt.ctl("self", "drain", "--wait-for", "0")
    assert done.returncode == 1 and "the document announces nothing" in done.stderr
    assert mode(shunt) == "native"


# ---- hooks ----

class Hook:
    """A program in the folder of announcement hooks that writes down what it is told."""

    def __init__(self, shunt, name="tell.sh", then="exit 0"):
        self.folder = shunt.dir / "hooks" / "announce"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.shunt, self.path, self.log = shunt, self.folder / name, shunt.dir / f"{name}.log"
        self.write(then)

    def write(self, then):
        fresh = self.path.with_suffix(".new")
        fresh.write_text(f'#!/bin/sh\n[ $# = 2 ] && echo "$SHUNT_INSTANCE $1 $2" >>{self.log}\n{then}\n')
        fresh.chmod(0o755)
        fresh.rename(self.path)  # one that runs cannot be written to

    def told(self):
        """Calls so far, [how, address]."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        assert all(line.startswith(self.shunt.instance + " ") for line in lines)
        return [line.split()[1:] for line in lines]

    def last(self):
        return {address: how for how, address in self.told()}

    def expect(self, how, addresses=BOTH):
        self.shunt.wait(lambda: self.last() == dict.fromkeys(addresses, how), f"{addresses} are {how}")


def start(shunt, **announce):
    shunt.write({**web(2), "announce": announce})
    return shunt.start("--hooks-dir", shunt.dir / "hooks")


def set_weights(shunt, weight):
    for name in ("web1", "web2"):
        assert shunt.ctl("backend", "set", f"web/{name}", "--weight", weight).returncode == 0


def announced(shunt, count):
    shunt.wait(lambda: shunt.json("status")["announce"]["announced"] == count, f"{count} are announced")


def test_a_hook_is_told_of_each_change_once(shunt):
    hook = Hook(shunt)
    start(shunt, hook="tell.sh")
    hook.expect("up")
    announced(shunt, 2)
    assert "2 of 2 addresses, by hook tell.sh\n" in shunt.ctl("status").stdout
    assert shunt.json("status")["announce"]["table"] is None
    set_weights(shunt, "0")
    hook.expect("down")
    announced(shunt, 0)
    set_weights(shunt, "1")
    hook.expect("up")
    announced(shunt, 2)
    assert sorted(hook.told()) == sorted([how, address] for address in BOTH for how in ("up", "down", "up"))


def test_a_hook_beside_a_table(shunt):
    hook = Hook(shunt)
    start(shunt, hook="tell.sh", table=TABLE)
    hook.expect("up")
    expect(shunt, BOTH)
    announced(shunt, 2)
    assert "in table 100, by hook tell.sh\n" in shunt.ctl("status").stdout


def test_what_a_hook_was_told_before_a_kill_is_taken_back(shunt):
    hook = Hook(shunt)
    start(shunt, hook="tell.sh")
    hook.expect("up")
    shunt.kill()
    shunt.write({**web(2), "announce": {"hook": "tell.sh"}, "services": web(2)["services"][:1]})
    shunt.start("--hooks-dir", shunt.dir / "hooks")
    shunt.wait(lambda: hook.last() == {"192.0.2.10": "up", "2001:db8::10": "down"}, "the second is down")
    shunt.kill()
    shunt.write(web(2))
    shunt.start("--hooks-dir", shunt.dir / "hooks")
    hook.expect("down")
    shunt.wait(lambda: json.loads((shunt.state / "announce.json").read_text()[17:])["hook"] == "", "it is forgotten")


def test_another_hook_takes_over(shunt):
    first, second = Hook(shunt), Hook(shunt, "other.sh")
    start(shunt, hook="tell.sh")
    first.expect("up")
    shunt.write({**web(2), "announce": {"hook": "other.sh"}})
    assert shunt.ctl("reload").returncode == 0
    first.expect("down")
    second.expect("up")


def test_a_hook_that_fails_is_an_alarm_and_tried_again(shunt):
    hook = Hook(shunt, then="exit 3")
    start(shunt, hook="tell.sh")
    shunt.wait(lambda: shunt.json("status")["alarms"]["announce"], "the alarm")
    assert any("hook tell.sh could not be told of" in text and text.endswith(": exit status 3")
               for text in shunt.json("status")["problems"])
    assert service(shunt, "www")["announced"] is False
    hook.write("exit 0")
    announced(shunt, 2)
    assert shunt.json("status")["alarms"]["announce"] is False


def test_a_hook_that_hangs_is_ended_and_hinders_nobody(shunt):
    hook = Hook(shunt, then="sleep 1000")
    made = {**web(2), "announce": {"hook": "tell.sh"}}
    made["services"] += [{"name": f"more{i}", "address": f"192.0.2.{20 + i}", "protocol": "tcp", "ports": [80],
                          "pool": "web"} for i in range(8)]
    shunt.write(made)
    shunt.start("--hooks-dir", shunt.dir / "hooks")
    shunt.wait(lambda: len(hook.told()) == 4, "four run")
    children = f"/proc/{shunt.process.pid}/task/{shunt.process.pid}/children"
    for _ in range(20):
        assert shunt.ctl("--timeout", "4", "status").returncode in (0, 1)
    with open(children, encoding="ascii") as running_now:
        assert len(running_now.read().split()) <= 4
    assert len(hook.told()) == 4, "and no more side by side"
    hook.write("exit 0")
    shunt.wait(lambda: len(hook.told()) > 4, "others have their turn", 40)
    assert "it took longer than 10 s" in shunt.log_tail()
    announced_all = {row["address"] for row in shunt.json("service", "list")["services"]}
    shunt.wait(lambda: shunt.json("status")["announce"]["announced"] == len(announced_all), "all are told", 60)


@pytest.mark.parametrize("what", ["missing", "writable", "folder", "a check's"])
def test_only_roots_files_of_the_folder_are_hooks(shunt, what):
    hook = Hook(shunt)
    says = {"missing": "is not in the hooks directory", "writable": "must be a file of root's that nobody else can write",
            "folder": "in a directory that others than root can write", "a check's": "is not in the hooks directory"}
    if what == "missing":
        hook.path.unlink()
    elif what == "writable":
        hook.path.chmod(0o757)
    elif what == "folder":
        hook.folder.chmod(0o777)
    else:
        hook.path.rename(hook.folder.parent / hook.path.name)
    start(shunt, hook="tell.sh")
    shunt.wait(lambda: any(says[what] in text for text in shunt.json("status")["problems"]), "it is refused")
    assert hook.told() == []


def test_a_drain_waits_for_its_hook(shunt):
    hook = Hook(shunt, then="sleep 1")
    start(shunt, hook="tell.sh")
    announced(shunt, 2)
    reply = shunt.json("self", "drain", "--wait-for", "0")
    assert reply["announced"] == 0 and reply["detached"] == ["eth0"]
    hook.expect("down")
    assert shunt.ctl("self", "undrain").returncode == 0
    hook.expect("up")
