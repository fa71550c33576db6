# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A lab whose backends answer messages, one shunt before them, and clients that talk all the time."""

import json
import subprocess
import time

from balancer import Balancer, CtlError, wait_for
from lab import BUILD, Lab, LabError

PORT, SLOW_PORT, HTTP_PORT = 7000, 7001, 80


class Site:
    """Backends b1 ... are reached by IPv4 (odd) and IPv6 (even); `first` of them are in the pool at the start."""

    def __init__(self, name, backends=12, first=8, settle="5s", learn="2s", size=4099, **pool):
        self.lab = Lab(name)
        self.shunt, self.servers, self.clients = None, {}, []
        try:
            self.lab.up(backends=backends)
            self.shunt = Balancer(self.lab)
            for node in self.lab.backends:
                self.start_server(node)
            members = {node: (self.address(node), 1) for node in self.lab.backends[:first]}
            services = [{"name": f"{protocol}{i}", "address": address, "protocol": protocol, "pool": "web",
                         "ports": [PORT] if protocol == "udp" else [PORT, SLOW_PORT, HTTP_PORT]}
                        for i, address in enumerate(self.lab.info["services"]) for protocol in ("tcp", "udp")]
            self.shunt.write({"web": {"backends": members, "settle": settle, "learn": learn,
                                      "table": {"algorithm": "maglev", "size": size}, **pool}}, services)
            self.shunt.attach()
            self.shunt.start()
        except BaseException:
            self.close()
            raise

    def close(self):
        for client in self.clients:
            client.close()
        if self.shunt:
            self.shunt.stop()
        for server in self.servers.values():
            server.kill()
            server.wait(10)
        self.lab.down()

    # ---- backends ----

    def number(self, node):
        return int(node[1:])

    def address(self, node):
        return self.lab.address(node, 4 if self.number(node) % 2 else 6)

    def start_server(self, node):
        with open(self.lab.dir / f"{node}.log", "a", encoding="utf-8") as log:
            self.servers[node] = self.lab.popen(node, BUILD / "tests/churn/server", self.number(node), PORT,
                                                *self.lab.info["services"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop_server(self, node):
        self.servers[node].kill()
        self.servers[node].wait(10)

    def server_logs(self):
        return "".join((self.lab.dir / f"{node}.log").read_text() for node in self.lab.backends)

    # ---- shuntctl ----

    def ctl(self, *args):
        return self.shunt.ctl(*args)

    def rows(self):
        """{name: row} of the pool's backends."""
        return {row["name"]: row for row in self.ctl("backend", "list")["backends"]}

    def pool(self):
        return self.shunt.pool()

    def settled(self, timeout=60):
        """Wait until no slot is in transition."""
        def rested():
            return self.pool()["tracked"] == 0
        wait_for("all slots have settled", rested, timeout)

    def client(self, protocol="tcp", count=200, seed=1, port=PORT):
        client = Client(self, protocol, count, seed, port)
        self.clients.append(client)
        return client


class Client:
    """client.c in the client's namespace."""

    def __init__(self, site, protocol, count, seed, port):
        self.site = site
        self.process = site.lab.popen("client", BUILD / "tests/churn/client", protocol, count, seed, port,
                                      *site.lab.info["services"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise LabError(f"the client died ({self.process.wait(10)}) at {command}")
        return json.loads(line)

    def count(self):
        """{node: open connections} beside the rest."""
        reply = self.ask("count")
        reply["by"] = {f"b{number}": count for number, count in reply["by"].items()}
        return reply

    def leave(self, node, timeout=30):
        """Ask the connections on a backend to end, until there are none (for those that were being opened, too)."""
        until = time.monotonic() + timeout
        while True:
            reply = self.ask(f"leave {self.site.number(node)}")
            if str(self.site.number(node)) not in reply["by"]:
                return
            if time.monotonic() > until:
                raise LabError(f"connections on {node} do not end: {reply}")
            time.sleep(0.2)

    def warm(self, count, timeout=30):
        wait_for(f"{count} connections are open", lambda: self.count()["open"] >= count, timeout, interval=0.2)

    def stop(self):
        """{"connections", "messages", "lost", "broken": [...]}"""
        reply = self.ask("stop")
        self.process.wait(30)
        return reply

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()


__all__ = ["Site", "Client", "CtlError", "LabError", "wait_for", "PORT", "SLOW_PORT", "HTTP_PORT"]
