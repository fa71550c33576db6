# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The control protocol from its document alone, so that what is wrong can be said too."""

import json
import os
import socket

from shuntlab import RUN


def request(method, version=1, **parameters):
    message = {"method": f"shunt.control.{method}", "parameters": parameters, "version": version}
    return json.dumps(message).encode() + b"\0"


class Connection:
    """One connection; give it bytes, take replies."""

    def __init__(self, shunt, timeout=30.0):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(str(RUN / shunt.instance / "control.sock"))
        self.waiting = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def reply(self):
        """The next reply; None if the daemon closed."""
        while b"\0" not in self.waiting:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.waiting += data
        message, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        self.send(request(method, **parameters))
        return self.reply()


def ask(shunt, method, **parameters):
    """The reply's parameters; an error of the daemon's is an AssertionError."""
    with Connection(shunt) as connection:
        reply = connection.ask(method, **parameters)
    assert "error" not in reply, reply
    return reply["parameters"]


def error_of(shunt, method, **parameters):
    """(name, message) of the error that is expected."""
    with Connection(shunt) as connection:
        reply = connection.ask(method, **parameters)
    assert "error" in reply, f"{method} {parameters} was not refused: {reply}"
    return reply["error"].removeprefix("shunt.control."), reply["parameters"]["message"]


def pool(shunt, name="web"):
    return ask(shunt, "PoolList", name=name)["pools"][0]


def in_force(shunt):
    """What a change that is refused must leave alone."""
    return {p["name"]: (p["epoch"], p["phase"], p["digest"], p["activated"]) for p in ask(shunt, "PoolList")["pools"]}


def as_user(uid, function, gid=None, groups=()):
    """Run function() in a child process as another user, of these groups alone; whether it was true."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups(groups)
            os.setgid(uid if gid is None else gid)
            os.setuid(uid)
            code = 0 if function() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
