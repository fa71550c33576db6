# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A virtual machine with a stock kernel, in a network namespace of its own.

    host's namespace              virtual machine
      agent  10.255.0.1  -------  eth0  10.255.0.2   commands (agent.c)
      switch (bridge)    -------  eth1, eth2, eth3   what is tested
"""

import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("O", TOP / "build"))

HOST, GUEST, PORT = "10.255.0.1", "10.255.0.2", 1023
LINKS = {"agent": "52:54:00:00:00:01", "front": "52:54:00:00:00:02", "back": "52:54:00:00:00:03",
         "side": "52:54:00:00:00:04"}
BOOT_SECONDS = 120


def argv_in(netns, *argv):
    return ["nsenter", f"--net=/run/netns/{netns}", "--", *map(str, argv)]


class Machine:
    """Open with `with`; the namespace and the machine are gone afterwards, the console's text stays."""

    def __init__(self, kernel, image, console):
        self.kernel, self.image, self.console = kernel, image, console
        self.netns = f"shunt-vm-{os.getpid()}"
        self.process = None

    def __enter__(self):
        try:
            self._network()
            self._boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait(20)
        subprocess.run(["ip", "netns", "del", self.netns], check=False, capture_output=True)

    def _network(self):
        subprocess.run(["ip", "netns", "add", self.netns], check=True)
        taps = "".join(f"ip tuntap add {name} mode tap vnet_hdr\nip link set {name} mtu 1600 up\n" for name in LINKS)
        self.sh("echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad\n" + taps +
                f"ip address add {HOST}/24 dev agent\n"
                "ip link add switch type bridge\nip link set switch up\n"
                + "".join(f"ip link set {name} master switch\n" for name in LINKS if name != "agent"))

    def _boot(self):
        (kernel,) = self.kernel.glob("boot/vmlinuz-*")
        cards = [argument for name, mac in LINKS.items() for argument in (
            "-netdev", f"tap,id={name},ifname={name},script=no,downscript=no,vhost=off",
            "-device", f"virtio-net-pci,netdev={name},mac={mac},host_mtu=1600,romfile=")]
        self.process = subprocess.Popen(
            argv_in(self.netns, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
                    "-m", "1024", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                    "-serial", f"file:{self.console}", "-kernel", kernel, "-initrd", self.image,
                    "-append", f"console=ttyS0 panic=-1 quiet agent={GUEST}:{PORT}", *cards),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + BOOT_SECONDS
        while "agent: ready" not in self.said():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise RuntimeError(f"the machine does not start: {self.process.stderr.read()}{self.said()[-3000:]}")
            time.sleep(0.1)

    def said(self):
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def via(self):
        """The words before a command that make it run in the machine."""
        return argv_in(self.netns, sys.executable, "-B", __file__)

    def sh(self, script):
        """A script in the namespace that the machine's links end in."""
        return subprocess.run(argv_in(self.netns, "sh", "-eu", "-c", script), check=True, capture_output=True,
                              text=True).stdout


def remote(argv):
    """Run a command in the machine of this network namespace, with this process's input and output: its exit status."""
    connection = socket.create_connection((GUEST, PORT), 20)
    connection.settimeout(None)
    connection.sendall(shlex.join(argv).encode() + b"\0")
    threading.Thread(target=feed, args=(connection,), daemon=True).start()
    kept = b""
    while data := connection.recv(65536):
        text, nul, status = (kept + data).partition(b"\0")
        os.write(1, text)
        kept = nul + status
        if status.endswith(b"\n"):
            return int(status)
    return 255


def feed(connection):
    while data := os.read(0, 65536):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(remote(sys.argv[1:]))
