# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks by https down the data path: what takes a backend out, and brings it back."""

import subprocess

import pytest
from balancer import wait_for
from certificates import make_authority, make_certificate

HOST = "www.example.com"
SECONDS = 2  # of interval and timeout: six backends shake hands twice in each, on a busy machine
WITHIN = 30

SERVER = """
import http.server, socket, ssl, sys

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"all well"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

server = Server(("::", 443), Answer)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + ".pem", sys.argv[1] + ".key")
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("ready", flush=True)
server.serve_forever()
"""


class Servers:
    def __init__(self, lab):
        self.lab, self.running, self.folder = lab, {}, lab.dir / "certificates"
        self.folder.mkdir()
        make_authority(self.folder)
        make_certificate(self.folder, "good", f"DNS:{HOST}")
        make_certificate(self.folder, "expired", f"DNS:{HOST}", days=-1)
        for backend in lab.backends:
            self.start(backend)

    def start(self, backend, certificate="good"):
        process = self.lab.popen(backend, "/usr/bin/python3", "-c", SERVER, self.folder / certificate,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.running[backend] = process
        assert process.stdout.readline() == b"ready\n"

    def stop(self, backend):
        process = self.running.pop(backend)
        process.kill()
        process.communicate()

    def close(self):
        for backend in list(self.running):
            self.stop(backend)


@pytest.fixture
def servers(checked):
    made = Servers(checked.lab)
    yield made
    made.close()
    checked.apply()


def test_out_and_back(checked, servers):
    # The service has 80 too: 443 is asked.
    checked.write(ports=(80, 443), type="https", host=HOST, verify="ca", match="all well", path="/healthz",
                  interval=f"{SECONDS}s", timeout=f"{SECONDS}s", rise=1, fall=2, **{"ca-file": str(servers.folder / "ca.pem"),
                                                                    "packet-size": 1500})
    checked.shunt.ctl("reload")
    checked.all_up()

    def out(why):
        row = checked.wait_out(within=WITHIN)
        assert row["health"] == "down" and why in row["health_why"], row["health_why"]

    servers.stop("b1")
    out("refused")
    servers.start("b1", "expired")
    wait_for("its certificate is seen", lambda: "certificate expired on" in checked.rows()["b1"]["health_why"], WITHIN)
    servers.stop("b1")
    servers.start("b1")
    checked.wait_back(within=WITHIN)
    checked.lab.sh("b1", "ip address del 192.0.2.10/32 dev lo")
    try:
        out("192.0.2.10:443")
    finally:
        checked.lab.sh("b1", "ip address add 192.0.2.10/32 dev lo")
    checked.wait_back(within=WITHIN)
    checked.lab.sh("router", "ip link set b1 mtu 1500; ip link set switch mtu 1600")
    try:
        out("no answer")
    finally:
        checked.lab.sh("router", "ip link set b1 mtu 1600")
    checked.wait_back(within=WITHIN)


def test_no_route_is_not_no_address(checked):
    """The source of a check of the other family than the outer one comes from the route to the service."""
    checked.apply()
    lab = checked.lab
    default = lab.sh("lb", "ip -6 route show default").strip()
    addresses = [a.split() for a in lab.sh("lb", "ip -6 -o address show scope global").splitlines()]
    assert default and addresses
    lab.sh("lb", "ip -6 route del default")
    try:
        wait_for("it says so", lambda: "no IPv6 route leads to" in checked.rows()["b1"]["health_why"])
        assert checked.rows()["b1"]["slots"]
        assert any("no IPv6 route" in p for p in checked.shunt.ctl("status")["problems"])
        lab.sh("lb", "\n".join(f"ip address del {a[3]} dev {a[1]}" for a in addresses))
        wait_for("it says so", lambda: "has no IPv6 address" in checked.rows()["b1"]["health_why"])
    finally:
        lab.sh("lb", "\n".join(f"ip address replace {a[3]} dev {a[1]} nodad" for a in addresses))
        lab.sh("lb", f"ip -6 route add {default}")
    checked.all_up()
