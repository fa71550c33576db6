#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers for checks by https, each on a port of its own and most of them with a fault.

    tls_servers.py DIR      DIR has the certificates that test_https.py makes

PORTS says who is where.  Prints "ready" when all of them listen.
"""

import ctypes
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

BODY_LIMIT = 200_000  # more than a check reads


class Site:
    def __init__(self, folder):
        self.folder = folder

    def context(self, name="good", minimum=ssl.TLSVersion.TLSv1_2, maximum=ssl.TLSVersion.MAXIMUM_SUPPORTED):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        context.minimum_version, context.maximum_version = minimum, maximum
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context


def answer(status="200 OK", body=b"well"):
    return b"HTTP/1.1 " + status.encode() + b"\r\nConnection: close\r\n\r\n" + body


def serve(reply, **context):
    """A server that shakes hands; reply(connection) is what it says to a request."""
    def make(site):
        made = site.context(**context)
        seen = {}
        made.sni_callback = lambda connection, name, _: seen.__setitem__(id(connection), name)

        def handle(raw):
            with made.wrap_socket(raw, server_side=True) as tls:
                tls.recv(4096)
                reply(tls, seen.pop(id(tls), None))
                tls.unwrap()
        return handle
    return make


def says(*args, **kwargs):
    return lambda tls, name: tls.sendall(answer(*args, **kwargs))


def tells_what_it_saw(tls, name):
    tls.sendall(answer(body=f"sni={name} alpn={tls.selected_alpn_protocol()} again={tls.session_reused} "
                            f"version={tls.version()}.".encode()))


def slowly(tls, name):
    for byte in answer():
        tls.sendall(bytes([byte]))
        time.sleep(1)


def for_ever(tls, name):
    tls.sendall(answer(body=b""))
    while True:
        tls.sendall(b"x" * 16000)


def raw(*parts, hear=True, end=True, pause=0.0):
    """Bytes as they are; not `end`: then it waits."""
    def make(site):
        def handle(connection):
            if hear:
                connection.recv(4096)
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            if not end:
                time.sleep(60)
        return handle
    return make


def flight(site):
    """A server's first words, and all of them."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = site.context().wrap_bio(incoming, outgoing, server_side=True)

    def hear(connection):
        incoming.write(connection.recv(4096))
        try:
            server.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()
    return hear


def drips(site):
    def handle(connection):
        for byte in flight(site)(connection):
            connection.sendall(bytes([byte]))
            time.sleep(1)
    return handle


def closes_within(site):
    def handle(connection):
        connection.sendall(flight(site)(connection)[:300])
    return handle


def resets(site):
    def handle(connection):
        connection.recv(4096)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return handle


def client_certificate(version):
    def make(site):
        context = site.context(minimum=version, maximum=version)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(site.folder / "ca.pem")

        def handle(connection):
            with context.wrap_socket(connection, server_side=True) as tls:
                tls.recv(4096)
                tls.sendall(answer())
        return handle
    return make


def unknown_name(site):
    context = site.context()
    context.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
    return lambda connection: context.wrap_socket(connection, server_side=True)


def old(site):
    context = site.context(minimum=ssl.TLSVersion.TLSv1, maximum=ssl.TLSVersion.TLSv1_1)
    context.set_ciphers("ALL:@SECLEVEL=0")
    return lambda connection: context.wrap_socket(connection, server_side=True)


def hello_requests(site):
    """For ever, 4,000 in a record: they say nothing, and a client may not answer them within a handshake."""
    record = struct.pack(">BHH", 22, 0x303, 16000) + bytes(16000)

    def handle(connection):
        connection.recv(4096)
        while True:
            connection.sendall(record * 8)
    return handle


ALERT = struct.pack(">BHHBB", 21, 0x303, 2, 1, 0)  # a warning: close_notify
OLD_HELLO = bytes.fromhex("160301002a02000026 0301") + bytes(32) + bytes.fromhex("00002f00")
HUGE_RECORD = struct.pack(">BHH", 22, 0x303, 0xffff) + bytes(0xffff)
HUGE_MESSAGE = struct.pack(">BHHB", 22, 0x303, 0x4000, 2) + b"\xff\xff\xff" + bytes(0x3ffc)
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3

SERVERS = {
    "good": serve(tells_what_it_saw),
    "good_1_2": serve(tells_what_it_saw, maximum=V12),
    "good_1_3": serve(tells_what_it_saw, minimum=V13),
    "status": serve(says("503 Service Unavailable")),
    "body": serve(says(body=b"ill")),
    "long_body": serve(says(body=b"x" * BODY_LIMIT)),
    "endless_body": serve(for_ever),
    "slow_answer": serve(slowly),
    "no_answer": serve(lambda tls, name: time.sleep(60)),
    "closes_after": serve(lambda tls, name: None),
    "no_http": serve(lambda tls, name: tls.sendall(b"220 mail.example.com ESMTP ready\r\n")),
    "expired": serve(tells_what_it_saw, name="expired"),
    "self_signed": serve(tells_what_it_saw, name="self"),
    "wrong_name": serve(tells_what_it_saw, name="wrong"),
    "client": serve(tells_what_it_saw, name="client"),
    "silent": raw(hear=False, end=False),
    "drips": drips,
    "garbage": raw(b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(range(256)) * 64, end=False),
    "plain_http": raw(answer("400 Bad Request")),
    "closes": raw(),
    "closes_at_once": raw(hear=False),
    "closes_within": closes_within,
    "resets": resets,
    "close_notify": raw(ALERT),
    "huge_record": raw(HUGE_RECORD, end=False),
    "huge_message": raw(*[HUGE_MESSAGE] * 64, end=False),
    "hello_requests": hello_requests,
    "alerts": raw(*[struct.pack(">BHHBB", 21, 0x303, 2, 1, 112)] * 100, end=False),
    "old": old,
    "old_hello": raw(OLD_HELLO, end=False),
    "client_certificate_1_2": client_certificate(V12),
    "client_certificate_1_3": client_certificate(V13),
    "unknown_name": unknown_name,
}
PORTS = {name: 7000 + i for i, name in enumerate(SERVERS)}
PORTS["renegotiates"] = 7100


def renegotiate(folder, port):
    """openssl s_server, for one connection after another: it negotiates anew when its input says so."""
    while True:
        server = subprocess.Popen(["openssl", "s_server", "-accept", str(port), "-naccept", "1", "-tls1_2", "-cert",
                                   folder / "good.pem", "-key", folder / "good.key"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=die_with_us)
        for line in server.stdout:
            if line.startswith(b"CIPHER is"):
                server.stdin.write(b"R\n")
                server.stdin.flush()
        server.stdin.close()
        server.wait()


def die_with_us():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def attend(handle, connection):
    with connection:
        try:
            handle(connection)
        except OSError:
            pass  # the check has gone: it has seen enough


def listen(listener, handle):
    while True:
        threading.Thread(target=attend, args=(handle, listener.accept()[0]), daemon=True).start()


def main():
    warnings.simplefilter("ignore", DeprecationWarning)  # TLS 1.0 is the point
    site = Site(Path(sys.argv[1]))
    for name, make in SERVERS.items():
        listener = socket.create_server(("0.0.0.0", PORTS[name]), backlog=64)
        threading.Thread(target=listen, args=(listener, make(site)), daemon=True).start()
    threading.Thread(target=renegotiate, args=(site.folder, PORTS["renegotiates"]), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
