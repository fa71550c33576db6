# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks by https: each fault of a server gives its own words, and none holds the daemon or leaks."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from certificates import make_authority, make_certificate, make_self_signed
from shuntlab import SLOWER, TOP, Shunt, run
from tls_servers import PORTS

HOST = "www.example.com"
ADDRESS = "10.1.0.11"  # and its MAC address
TIMEOUT = 10 if SLOWER > 1 else 1  # seconds, and the interval
SAW = "sni={sni} alpn=http/1.1 again=False version={version}."


def make_certificates(folder):
    make_authority(folder)
    make_self_signed(folder, "self", HOST)
    (folder / "link.pem").symlink_to("ca.pem")
    make_certificate(folder, "good", f"DNS:{HOST},IP:{ADDRESS}")
    make_certificate(folder, "expired", f"DNS:{HOST}", days=-1)
    make_certificate(folder, "wrong", "DNS:www.example.net")
    make_certificate(folder, "client", f"DNS:{HOST}", extensions="extendedKeyUsage=clientAuth\n")


# ---- a daemon, and a namespace with the servers ----

def pool(name, server, **health):
    health = {"type": "https", "check-via": "direct", "port": PORTS[server], "host": HOST, "interval": f"{TIMEOUT}s",
              "timeout": f"{TIMEOUT}s", "rise": 1, "fall": 1, "hold-down": "0s", **health}
    return {"name": name.replace("_", "-"), "table": {"size": 251}, "backends": [{"name": "b", "address": ADDRESS}],
            "health": health}


class Servers:
    def __init__(self, shunt, folder):
        self.shunt, self.folder, self.netns = shunt, folder, f"{shunt.netns}-s"
        self.processes = []
        run(["ip", "netns", "add", self.netns])
        try:
            shunt.sh(f"ip link set far netns {self.netns}")
            self.sh(f"ip link set lo up; ip link set far address 02:00:00:00:00:0b arp on up; "
                    f"ip address add {ADDRESS}/16 dev far")
            make_certificates(folder)
            servers = self.start(sys.executable, "-B", TOP / "tests/daemon/tls_servers.py", folder)
            assert servers.stdout.readline() == b"ready\n"
        except BaseException:
            self.close()
            raise

    def start(self, *argv):
        process = subprocess.Popen(["nsenter", f"--net=/run/netns/{self.netns}", "--", *map(str, argv)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def sh(self, script):
        return run(["nsenter", f"--net=/run/netns/{self.netns}", "--", "sh", "-eu", "-c", script])

    def close(self):
        for process in self.processes:
            process.terminate()
            process.communicate()
        run(["ip", "netns", "del", self.netns])


def row(shunt, name):
    return next(r for r in shunt.json("backend", "list")["backends"] if r["pool"] == name.replace("_", "-"))


def saw(version="TLSv1.3", sni=HOST):
    return SAW.format(sni=sni, version=version)


RESET = ("within TLS: Connection reset by peer", "within TLS: Broken pipe")  # if that comes before what was sent is read

# Pool: (server, further keys, how what is said begins; None: it is up).
CASES = {
    "good": ("good", {"match": saw()}, None),
    "good_1_2": ("good_1_2", {"match": saw("TLSv1.2")}, None),
    "good_1_3": ("good_1_3", {"match": saw(), "status": 200}, None),
    "host_with_a_port": ("good", {"host": f"{HOST}:8443", "match": saw()}, None),
    "sni": ("good", {"sni": "other.example.com", "match": saw(sni="other.example.com")}, None),
    "no_sni_for_an_address": ("good", {"host": ADDRESS, "match": saw(sni=None)}, None),
    "no_host": ("good", {"host": None, "match": saw(sni=None)}, None),
    "trusted": ("good", {"verify": "ca", "ca-file": "ca.pem"}, None),
    "trusted_by_a_link": ("good", {"verify": "ca", "ca-file": "link.pem"}, None),
    "trusted_address": ("good", {"verify": "ca", "ca-file": "ca.pem", "host": ADDRESS}, None),
    "trusted_itself": ("self_signed", {"verify": "ca", "ca-file": "self.pem"}, None),
    "expired_but_unverified": ("expired", {}, None),
    "self_signed_but_unverified": ("self_signed", {}, None),
    "wrong_name_but_unverified": ("wrong_name", {}, None),
    "expired": ("expired", {"verify": "ca", "ca-file": "ca.pem"}, "the certificate expired on 20"),
    "self_signed": ("self_signed", {"verify": "ca", "ca-file": "ca.pem"},
                    "the certificate is of no authority in the CA file"),
    "system": ("good", {"verify": "ca"}, "the certificate is of no authority in the CA file"),
    "wrong_name": ("wrong_name", {"verify": "ca", "ca-file": "ca.pem"}, f"the certificate is not for {HOST}"),
    "wrong_sni": ("good", {"verify": "ca", "ca-file": "ca.pem", "sni": "other.example.com"},
                  "the certificate is not for other.example.com"),
    "wrong_address": ("good", {"verify": "ca", "ca-file": "ca.pem", "host": "10.1.0.12"},
                      "the certificate is not for 10.1.0.12"),
    "wrong_purpose": ("client", {"verify": "ca", "ca-file": "ca.pem"}, "the certificate is not one for servers"),
    "status": ("status", {}, "HTTP status 503"),
    "body": ("body", {"match": "well"}, 'HTTP status 200, but "well" is not in the body'),
    "long_body": ("long_body", {"match": "well"}, 'HTTP status 200, but "well" is not in the body'),
    "endless_body": ("endless_body", {"match": "well"}, 'HTTP status 200, but "well" is not in the body'),
    "slow_answer": ("slow_answer", {}, f"no whole answer within {TIMEOUT}s"),
    "no_answer": ("no_answer", {}, f"no answer to the request within {TIMEOUT}s"),
    "closes_after": ("closes_after", {}, "ended without an HTTP answer"),
    "no_http": ("no_http", {}, "the answer is no HTTP"),
    "silent": ("silent", {}, f"no answer to the TLS handshake within {TIMEOUT}s"),
    "drips": ("drips", {}, f"no end of the TLS handshake within {TIMEOUT}s"),
    "garbage": ("garbage", {}, "what answers speaks no TLS"),
    "plain_http": ("plain_http", {}, "what answers speaks no TLS"),
    "closes": ("closes", {}, "the server closed the connection within the TLS handshake"),
    "closes_within": ("closes_within", {}, RESET + ("the server closed the connection within the TLS handshake",)),
    "resets": ("resets", {}, "within TLS: Connection reset by peer"),
    "close_notify": ("close_notify", {}, "the server ended the TLS handshake"),
    "huge_record": ("huge_record", {}, "TLS: A TLS record packet with invalid length"),
    "huge_message": ("huge_message", {}, "the server sends too much for a TLS handshake"),
    "hello_requests": ("hello_requests", {}, "TLS: An unexpected TLS handshake packet"),
    "alerts": ("alerts", {}, "the server does not know the name www.example.com (SNI)"),
    "old": ("old", {}, "the server speaks no TLS 1.2 or newer"),
    "old_hello": ("old_hello", {}, "the server speaks no TLS 1.2 or newer"),
    "client_certificate_1_2": ("client_certificate_1_2", {}, "the server wants a client certificate"),
    "client_certificate_1_3": ("client_certificate_1_3", {}, RESET + ("the server wants a client certificate",)),
    "unknown_name": ("unknown_name", {}, "the server does not know the name www.example.com (SNI)"),
    "renegotiates": ("renegotiates", {}, "the server wants to negotiate anew"),
}


def document(folder, cases=None):
    pools = []
    for name in CASES if cases is None else cases:
        server, keys, _ = CASES[name]
        keys = {k: str(folder / v) if k == "ca-file" else v for k, v in keys.items()}
        made = pool(name, server, **keys)
        made["health"] = {k: v for k, v in made["health"].items() if v is not None}
        pools.append(made)
    return {"version": 1, "pools": pools, "services": []}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    with Shunt() as shunt:
        servers = Servers(shunt, folder)
        try:
            shunt.write(document(folder))
            shunt.start()
            yield servers
            assert shunt.process.poll() is None, shunt.log_tail()
            assert shunt.stop() == 0, shunt.log_tail()
        finally:
            shunt.stop()
            servers.close()


@pytest.mark.parametrize("name", CASES)
def test_verdict(site, name):
    shunt, why = site.shunt, CASES[name][2]

    def verdict():
        found = row(shunt, name)
        if why is None:
            return found["health"] == "up" and not found["health_why"]
        return found["health"] == "down" and found["health_why"] and found["health_why"].startswith(why)
    try:
        shunt.wait(verdict, f"{name} says so", 20)
    except AssertionError as error:
        raise AssertionError(f"{row(shunt, name)['health_why']}: {error}") from None
    assert row(shunt, name)["health_why"] in shunt.ctl("backend", "show", f"{name.replace('_', '-')}/b").stdout


def open_sockets(shunt):
    """Sockets that are open: those of checks, and the daemon's own."""
    sockets = 0
    for entry in Path(f"/proc/{shunt.process.pid}/fd").iterdir():
        try:
            sockets += os.readlink(entry).startswith("socket:")
        except FileNotFoundError:
            pass  # it has just been closed
    return sockets


def rss_kb(shunt):
    status = Path(f"/proc/{shunt.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


@pytest.mark.skipif(SLOWER > 1, reason="times and sizes are those of a daemon by itself")
def test_nobody_waits_and_nothing_is_left(site):
    """Of all the faults together, many times a second."""
    shunt = site.shunt
    none, many = document(site.folder, cases=[]), document(site.folder)
    shunt.write(none)
    shunt.json("reload")
    own = min(open_sockets(shunt) for _ in range(20) if not time.sleep(0.1))  # the client's may not be closed yet
    for made in many["pools"]:
        made["health"].update({"interval": "100ms", "timeout": "100ms"})
    shunt.write(many)
    shunt.json("reload")
    time.sleep(3)
    before, slowest = rss_kb(shunt), 0.0
    until = time.monotonic() + 8
    while time.monotonic() < until:
        asked = time.monotonic()
        shunt.json("status")
        slowest = max(slowest, time.monotonic() - asked)
    assert slowest < 3
    assert rss_kb(shunt) - before < 16000  # sessions of 3,000 checks and more would be 40 MB
    assert open_sockets(shunt) > own
    shunt.write(none)
    shunt.json("reload")
    shunt.wait(lambda: open_sockets(shunt) <= own, "the checks' sockets are closed", 20)
    shunt.write(document(site.folder))
    shunt.json("reload")


# ---- CA files ----

def ca_document(site, path):
    made = document(site.folder, cases=["trusted"])
    made["pools"][0]["health"]["ca-file"] = str(path)
    return made


BAD_FILES = {
    "missing": (None, "(No such file or directory): put it there"),
    "empty": ("", "is empty: put the certificates"),
    "text": ("authority\n", "holds no certificate in PEM"),
    "key": ("ca.key", "holds no certificate in PEM"),
    "broken": ("-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n", "cannot be read ("),
    "folder": ("/", "is not a regular file"),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_a_ca_file_that_cannot_be_read_refuses_the_document(site, fault, tmp_path):
    shunt, (content, words) = site.shunt, BAD_FILES[fault]
    path = tmp_path / "ca.pem"
    if content == "/":
        path.mkdir()
    elif content is not None:
        path.write_text((site.folder / content).read_text() if content.endswith(".key") else content)
    shunt.write(ca_document(site, path))
    before = shunt.json("revision", "list")
    for verb in (("plan", shunt.config), ("apply", shunt.config), ("reload",)):
        done = shunt.ctl(*verb)
        text = done.stdout + done.stderr
        assert done.returncode == 1 and words in text and str(path) in text and 'pool "trusted": health:' in text, text
    assert shunt.json("revision", "list") == before


def wait_for_checks(shunt):
    def made():
        return row(shunt, "trusted")["health_passed"] + row(shunt, "trusted")["health_failed"]

    before = made()
    shunt.wait(lambda: made() > before + 1, "it is checked")


def test_a_ca_file_is_read_at_reload_and_not_by_the_way(site, tmp_path):
    shunt, path = site.shunt, tmp_path / "ca.pem"
    path.write_text((site.folder / "ca.pem").read_text())
    shunt.write(ca_document(site, path))
    shunt.json("reload")
    shunt.wait(lambda: row(shunt, "trusted")["health"] == "up", "it is up", 20)
    path.unlink()
    # Neither a verb nor a check needs it again.
    shunt.json("backend", "set", "trusted/b", "--weight", "7")
    wait_for_checks(shunt)
    assert row(shunt, "trusted")["health"] == "up"
    path.write_text((site.folder / "self.pem").read_text())
    wait_for_checks(shunt)
    shunt.json("reload")
    shunt.wait(lambda: row(shunt, "trusted")["health"] == "down", "it is down", 20)
    assert "no authority" in row(shunt, "trusted")["health_why"]


def test_whoever_gives_the_document_has_its_ca_file_read(site, tmp_path):
    """By an apply that changes nothing too, which makes no revision, and by a rollback; a plan only looks."""
    shunt, path = site.shunt, tmp_path / "ca.pem"
    good, other = ((site.folder / name).read_text() for name in ("ca.pem", "self.pem"))
    path.write_text(good)
    shunt.write(ca_document(site, path))
    shunt.json("reload")
    shunt.wait(lambda: row(shunt, "trusted")["health"] == "up", "it is up", 20)
    before = shunt.json("status")["revision"]
    shunt.json("backend", "set", "trusted/b", "--weight", "7")
    for content, verb, then in ((other, ("revision", "rollback", str(before)), "down"),
                                (good, ("apply", shunt.config), "up"), (other, ("reload",), "down")):
        path.write_text(content)
        assert shunt.ctl("plan", shunt.config).returncode == 0
        wait_for_checks(shunt)
        assert row(shunt, "trusted")["health"] != then
        done = shunt.ctl(*verb)
        assert done.returncode == 0, done.stderr
        shunt.wait(lambda: row(shunt, "trusted")["health"] == then, f"{verb}: it is {then}", 20)
    assert shunt.json("status")["revision"] == before + 2, "weight and rollback"
    path.unlink()
    for verb in (("plan", shunt.config), ("apply", shunt.config), ("reload",), ("revision", "rollback", str(before + 1)),
                 ("revision", "rollback", str(before + 1), "--plan")):
        done = shunt.ctl(*verb)
        assert done.returncode == 1 and str(path) in done.stderr, done
    assert shunt.json("status")["revision"] == before + 2


def test_a_start_without_the_ca_file_says_so_and_serves(site, tmp_path):
    shunt, path = site.shunt, tmp_path / "ca.pem"
    path.write_text((site.folder / "ca.pem").read_text())
    shunt.write(ca_document(site, path))
    shunt.json("reload")
    shunt.wait(lambda: row(shunt, "trusted")["health"] == "up", "it is up", 20)
    shunt.stop()
    path.unlink()
    shunt.start()
    shunt.wait(lambda: str(path) in row(shunt, "trusted")["health_why"], "it says so")
    assert row(shunt, "trusted")["slots"] == 251
    assert any("cannot be checked" in p for p in shunt.json("status")["problems"])
    path.write_text((site.folder / "ca.pem").read_text())
    shunt.json("reload")
    shunt.wait(lambda: row(shunt, "trusted")["health"] == "up" and not row(shunt, "trusted")["health_why"], "it is up")
