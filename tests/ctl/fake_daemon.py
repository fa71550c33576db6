# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server on an instance's control socket that answers as it is told: for what the real daemon never does."""

import json
import shutil
import socket
import threading
import uuid
from pathlib import Path

RUN = Path("/run/shunt")


class FakeDaemon:
    """answers: method -> parameters of the reply, bytes (sent as they are), or a function of the request's parameters
    that returns one of them.  A method without an answer gets UnknownMethod.  `requests` are those that came."""

    def __init__(self, answers=None, accept=True):
        self.instance = f"fake-{uuid.uuid4().hex[:12]}"
        self.dir = RUN / self.instance
        self.path = self.dir / "control.sock"
        self.answers = answers or {}
        self.accept = accept
        self.requests = []
        self.open = []

    def __enter__(self):
        self.dir.mkdir(parents=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(0 if not self.accept else 16)
        self.thread = threading.Thread(target=self._run, daemon=True)
        if self.accept:
            self.thread.start()
        return self

    def __exit__(self, *_):
        # shutdown() ends accept() in the other thread; close() alone does not.
        if self.accept:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.thread.join()
        for conn in self.open:
            conn.close()
        self.listener.close()
        shutil.rmtree(self.dir)

    def _run(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self._serve(conn)

    def _serve(self, conn):
        text = b""
        while not text.endswith(b"\0"):
            part = conn.recv(65536)
            if not part:
                conn.close()
                return
            text += part
        request = json.loads(text[:-1])
        self.requests.append(request)
        answer = self._answer(request)
        if answer is None:
            self.open.append(conn)  # says nothing and stays
            return
        conn.sendall(answer)
        conn.close()

    def _answer(self, request):
        method = request["method"].removeprefix("shunt.control.")
        if method not in self.answers:
            return error("UnknownMethod", f"there is no method {method}")
        answer = self.answers[method]
        if callable(answer):
            answer = answer(request["parameters"] if "parameters" in request else {})
        if isinstance(answer, dict):
            return json.dumps({"parameters": answer}).encode() + b"\0"
        return answer


def error(name, message, entries=()):
    return json.dumps({"error": f"shunt.control.{name}",
                       "parameters": {"message": message, "entries": list(entries)}}).encode() + b"\0"
