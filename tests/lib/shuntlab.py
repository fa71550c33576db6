# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shuntd alone in a network namespace, without traffic: for tests of the daemon and of shuntctl.

    with Shunt() as shunt:
        shunt.write(web(2))
        shunt.start()
        print(shunt.json("backend", "list"))

The namespace has one link, eth0, on 10.1.0.1/16 and fd00:1::1/64.  The backends 10.1.0.11 to .30 and fd00:1::11 to
::30 are permanent neighbours, so that the way to them is known at once; any other address of these networks never
answers.  (lab.py builds labs in which packets flow.)
"""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("O", TOP / "build"))
PINS = Path("/sys/fs/bpf/shunt")
RUN = Path("/run/shunt")
REACHABLE = range(11, 31)
CTL_TIMEOUT = 90.0
UNDER = os.environ.get("SHUNTD_UNDER", "").split()  # a program that runs shuntd: valgrind and its options
SLOWER = 10 if UNDER else 1


def backend(index, version=4):
    """Address of the index-th backend that can be reached, counted from 1."""
    return f"10.1.0.{index + 10}" if version == 4 else f"fd00:1::{index + 10}"


def web(backends=2, weights=None, slots=4099, version=4):
    """A document: pool web, services www (192.0.2.10:80) and www6 ([2001:db8::10]:any)."""
    weights = weights or [1] * backends
    return {
        "version": 1,
        "pools": [{"name": "web", "table": {"algorithm": "maglev", "size": slots}, "encapsulation": {"type": "ipip"},
                   "backends": [{"name": f"web{i}", "address": backend(i, version), "weight": weight}
                                for i, weight in enumerate(weights, 1)]}],
        "services": [{"name": "www", "address": "192.0.2.10", "protocol": "tcp", "ports": [80], "pool": "web"},
                     {"name": "www6", "address": "2001:db8::10", "protocol": "tcp", "ports": "any", "pool": "web"}],
    }


class Shunt:
    """A namespace, an instance of its own in it, and a folder for document, key, state and log."""

    def __init__(self, instance=None):
        self.instance = instance or f"t-{secrets.token_hex(6)}"
        self.netns = f"shunt-{self.instance}"
        self.key = secrets.token_hex(16)
        self.process = None

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="shunt-test-"))
        self.config = self.dir / "shunt.yaml"
        self.state = self.dir / "state"
        self.log = self.dir / "shuntd.log"
        key_file = self.dir / "hash.key"
        key_file.touch(mode=0o600)
        key_file.write_text(self.key + "\n")
        try:
            self._network()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        subprocess.run(["ip", "netns", "del", self.netns], check=False, capture_output=True)
        for path in [PINS / self.instance, RUN / self.instance, *RUN.glob(f"{self.instance}.*"), self.dir]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    @contextmanager
    def small_disk(self, size):
        """The state folder is a file system of that size (as mount takes it); the daemon ends with the block."""
        self.state.mkdir(mode=0o700)
        run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", self.state])
        try:
            yield self
        finally:
            self.stop()
            run(["umount", self.state])

    def _network(self):
        run(["ip", "netns", "add", self.netns])
        neighbours = "".join(f"ip neigh replace {address} lladdr 02:00:00:00:00:{index:02x} dev eth0 nud permanent\n"
                             for index in REACHABLE for address in (f"10.1.0.{index}", f"fd00:1::{index}"))
        # The other end of the link is in the namespace too: nobody there answers.
        self.sh("echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad\n"
                "ip link set lo up\n"
                "ip link add eth0 type veth peer name far\n"
                "ip address add 10.1.0.1/16 dev eth0\n"
                "ip address add fd00:1::1/64 dev eth0 nodad\n"
                "ip link set far arp off up\n"
                "ip link set eth0 up\n" + neighbours)

    # ---- commands ----

    def argv(self, argv):
        """nsenter and not `ip netns exec`, which hides bpffs."""
        return ["nsenter", f"--net=/run/netns/{self.netns}", "--", *map(str, argv)]

    def sh(self, script):
        return run(self.argv(["sh", "-eu", "-c", script]))

    def ctl(self, *args, stdin=""):
        """shuntctl on this instance: a CompletedProcess."""
        return subprocess.run(self.argv([BUILD / "shuntctl", "--instance", self.instance, *args]), check=False,
                              capture_output=True, text=True, input=stdin, timeout=CTL_TIMEOUT)

    def json(self, *args):
        """What shuntctl -j prints, which must end well."""
        done = self.ctl("-j", *args)
        assert done.returncode == 0, f"shuntctl {args}: exit {done.returncode}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    # ---- the document and the daemon ----

    def write(self, document):
        """Write the document, a dict (with this instance's key file, unless it names a key) or text."""
        if isinstance(document, dict):
            if "hash-key" not in document and "hash-key-file" not in document:
                document = {**document, "hash-key-file": str(self.dir / "hash.key")}
            document = json.dumps(document, indent=2) + "\n"  # JSON is YAML too
        self.config.write_text(document)

    def start(self, *options, wait=True):
        """Start shuntd; with wait, until it answers."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.argv([*UNDER, BUILD / "shuntd", "-c", self.config, "--instance", self.instance, "--state-dir",
                           self.state, *options]), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if wait:
            self.wait(lambda: self.ctl("--timeout", "1", "status").returncode != 3, "shuntd answers")
        return self

    def wait(self, condition, what, timeout=20.0):
        """Until condition() is true; an AssertionError with the log if it never is, or if shuntd ended."""
        timeout *= SLOWER
        until = time.monotonic() + timeout
        while not condition():
            ended = self.process is not None and self.process.poll() is not None
            assert not ended, f"shuntd ended with {self.process.returncode}:\n{self.log_tail()}"
            assert time.monotonic() < until, f"not within {timeout:g} s: {what}; the log:\n{self.log_tail()}"
            time.sleep(0.02)

    def log_tail(self):
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    def kill(self, sign=9):
        os.kill(self.process.pid, sign)
        return self.process.wait(20)

    def stop(self):
        """SIGTERM, or SIGKILL when that does nothing; the exit status, None if nothing ran."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.process.returncode


def run(argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, argv))}: exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout
