# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The lab: a client, a router, a load balancer and backends in network namespaces of their own.

    client ---- router ---- lb          front link: in by XDP, out by XDP_TX
                  |  \\______/           back link: the balancer's second arm, on the router's switch
               (switch)
              /   |   \\
            b1    b2   ...              service addresses on lo, answers go straight back to the client

Everything is named after the lab, so that several live side by side: namespaces shunt-LAB-NODE, instances LAB-NODE, and
the folder /run/shunt-lab/LAB, where lab.json has every address.
"""

import ipaddress
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("O", TOP / "build"))
PASS = BUILD / "tests/bpf/pass.bpf.o"
RUN = Path("/run/shunt-lab")
PINS = Path("/sys/fs/bpf/shunt")
NETNS = Path("/run/netns")

# An instance's name has at most 31 characters, and "-b1000" is added.
NAME = re.compile(r"[a-z][a-z0-9-]{0,23}")
BACKENDS_MAX = 1000
# Between the client's MTU and that of the links that carry encapsulated packets.
ENCAPSULATION_ROOM = 100

SERVICE_NETWORKS = ("192.0.2.0/24", "2001:db8::/64")
SERVICES = ("192.0.2.10", "2001:db8::10")
CLIENT = {"client": ("198.51.100.2", "2001:db8:c::2"), "router": ("198.51.100.1", "2001:db8:c::1")}
FRONT = {"lb": ("10.0.0.2", "fd00::2"), "router": ("10.0.0.1", "fd00::1")}
SECOND = {"lb": ("10.0.1.2", "fd00:0:1::2"), "router": ("10.0.1.1", "fd00:0:1::1")}
BACK = {"lb": ("10.1.0.2", "fd00:1::2"), "router": ("10.1.0.1", "fd00:1::1")}
BACK_NETWORKS = ("10.1.0.0/16", "fd00:1::/64")


class LabError(Exception):
    """What went wrong, in a sentence for people."""


class Stopped(BaseException):
    """A signal asked the program to end."""


def ignore_signals():
    """What takes things down is not to be stopped half-way."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.SIG_IGN)


def stop_on_signals():
    """From now on the first SIGINT, SIGTERM or SIGHUP raises Stopped, so that what was built is taken down."""
    def stop(number, _):
        ignore_signals()
        raise Stopped(signal.Signals(number).name)
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, stop)


def run(argv, **options):
    """Run a command to its end; a failure is a LabError with what it said."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        command = " ".join(str(a) for a in argv)
        raise LabError(f"{command}: exit {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def backend_addresses(index):
    """IPv4 and IPv6 address of backend `index`, counted from 1: 10.1.0.11 and fd00:1::11 are b1's."""
    high, low = divmod(index - 1, 200)
    text = f"{high}:{low + 11}" if high else f"{low + 11}"
    return f"10.1.{high}.{low + 11}", f"fd00:1::{text}"


def with_length(address, lengths):
    return f"{address}/{lengths[0] if ipaddress.ip_address(address).version == 4 else lengths[1]}"


class Lab:
    """One lab; `up` makes it, `Lab.load` finds one that is up."""

    def __init__(self, name):
        if not NAME.fullmatch(name):
            raise LabError(f"lab name {name!r}: use up to 24 of a-z, 0-9 and -, a letter first")
        self.name = name
        self.dir = RUN / name
        self.info = {}

    @classmethod
    def load(cls, name):
        lab = cls(name)
        try:
            lab.info = json.loads((lab.dir / "lab.json").read_text())
        except FileNotFoundError:
            raise LabError(f"lab {name} is not up: scripts/topo up --name {name}") from None
        return lab

    # ---- names ----

    def netns(self, node):
        return f"shunt-{self.name}-{node}"

    def instance(self, node):
        return f"{self.name}-{node}"

    @property
    def nodes(self):
        return list(self.info["nodes"])

    @property
    def backends(self):
        return [n for n in self.nodes if n.startswith("b")]

    def address(self, node, version=4):
        """A node's own address, of its first interface."""
        return self.info["nodes"][node]["addresses"][0 if version == 4 else 1]

    def service(self, version=4):
        return next(s for s in self.info["services"] if ipaddress.ip_address(s).version == version)

    # ---- commands in a node ----

    def argv(self, node, argv):
        """nsenter and not `ip netns exec`, which mounts a fresh /sys over bpffs."""
        if node not in self.info["nodes"]:
            raise LabError(f"lab {self.name} has no node {node!r}; it has: {' '.join(self.nodes)}")
        return ["nsenter", f"--net={NETNS / self.netns(node)}", "--"] + [str(a) for a in argv]

    def run(self, node, *argv, **options):
        return run(self.argv(node, argv), **options)

    def popen(self, node, *argv, **options):
        return subprocess.Popen(self.argv(node, argv), **options)

    def sh(self, node, script):
        return self.run(node, "sh", "-eu", "-c", script)

    # ---- up ----

    def up(self, backends=4, arms=1, mtu=1500, services=SERVICES, decap=True, encapsulation="ipip"):
        """Build everything.  On any failure nothing stays.

        arms: 1, packets leave the balancer by the link they came in by, through the router; 2, by its second link, on
        the backends' switch.  mtu: of the client's link.  decap: attach shunt_decap on the backends.
        encapsulation: what Balancer's documents say; with l2 nothing is unwrapped.
        """
        if encapsulation == "l2" and arms != 2:
            raise LabError("l2 reaches only backends on a link of the balancer: build the lab with two arms")
        if not 1 <= backends <= BACKENDS_MAX:
            raise LabError(f"a lab has 1 to {BACKENDS_MAX} backends")
        for service in services:
            if not any(ipaddress.ip_address(service) in ipaddress.ip_network(n) for n in SERVICE_NETWORKS):
                raise LabError(f"service address {service}: take one in {' or '.join(SERVICE_NETWORKS)}")
        for program in (PASS, BUILD / "shunt-loader"):
            if not program.exists():
                raise LabError(f"{program} is missing: make all lab")
        RUN.mkdir(parents=True, exist_ok=True)
        try:
            self.dir.mkdir()
        except FileExistsError:
            raise LabError(f"lab {self.name} is up already: scripts/topo down --name {self.name}") from None
        try:
            self._describe(backends, arms, mtu, list(services))
            self.info["encapsulation"] = encapsulation
            self._build(mtu)
            if decap and encapsulation != "l2":
                for node in self.backends:
                    self.attach_decap(node)
            (self.dir / "lab.json").write_text(json.dumps(self.info, indent=2) + "\n")
        except BaseException:
            self.down()
            raise
        return self

    def _describe(self, backends, arms, mtu, services):
        nodes = {
            "client": {"interfaces": ["eth0"], "addresses": list(CLIENT["client"])},
            "router": {"interfaces": ["client", "lb0", "switch"], "addresses": list(CLIENT["router"])},
            "lb": {"interfaces": ["lb0", "lb1"], "addresses": list(FRONT["lb"])},
        }
        for index in range(1, backends + 1):
            nodes[f"b{index}"] = {"interfaces": ["eth0"], "addresses": list(backend_addresses(index))}
        for node, entry in nodes.items():
            entry["netns"] = self.netns(node)
        self.info = {"name": self.name, "nodes": nodes, "services": services, "arms": arms, "mtu": mtu,
                     "service_networks": list(SERVICE_NETWORKS), "front": FRONT, "back": BACK,
                     "tunnel_sources": [*FRONT["lb"], *BACK["lb"]]}

    def _build(self, mtu):
        inner = mtu + ENCAPSULATION_ROOM
        ip_batch([f"netns add {self.netns(node)}" for node in self.nodes])
        for node in self.nodes:
            # Before there are interfaces, so that all of them start with it.
            self.sh(node, SYSCTLS + "ip link set lo up\n")
        links = [("client", "eth0", "client", mtu), ("lb", "lb0", "lb0", inner), ("lb", "lb1", "lb1", inner)]
        links += [(b, "eth0", b, inner) for b in self.backends]
        router = self.netns("router")
        ip_batch([f"link add {near} netns {self.netns(node)} mtu {size} type veth "
                  f"peer name {far} netns {router} mtu {size}" for node, near, far, size in links])
        for node, near, far, _ in links:
            self.sh(node, offloads_off(near) + (BACKEND_SYSCTLS if node.startswith("b") else ""))
        self.sh("router", "".join(offloads_off(far) for _, _, far, _ in links) + self._router(inner))
        self.sh("client", addresses("eth0", CLIENT["client"], (24, 64)) + routes(None, CLIENT["router"]))
        self.sh("lb", addresses("lb0", FRONT["lb"], (24, 64)) + routes(None, FRONT["router"]))
        self.set_arms(self.info["arms"])
        for node in self.backends:
            local = "".join(f"ip address add {with_length(s, (32, 128))} dev lo\n" for s in self.info["services"])
            own = self.info["nodes"][node]["addresses"]
            self.sh(node, addresses("eth0", own, (16, 64)) + local + routes(None, BACK["router"]))

    def _router(self, inner):
        ports = "".join(f"ip link set {port} master switch up\n" for port in ["lb1", *self.backends])
        # XDP_TX from the balancer arrives only where the other end has a program.
        programs = "".join(f"ip link set {port} xdpdrv obj {PASS} sec xdp.frags\n" for port in ("lb0", "lb1"))
        return (f"sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1\n" + PLAIN_SWITCH +
                f"ip link add switch mtu {inner} type bridge\n" + ports + programs +
                addresses("client", CLIENT["router"], (24, 64)) + addresses("lb0", FRONT["router"], (24, 64)) +
                addresses("switch", BACK["router"], (16, 64)) +
                routes(SERVICE_NETWORKS, FRONT["lb"]))

    def add_balancer(self):
        """A second balancer, lb2, beside the first, on a link lb2 of the router's; backends take packets from both."""
        inner = self.info["mtu"] + ENCAPSULATION_ROOM
        self.info["nodes"]["lb2"] = {"interfaces": ["lb0"], "addresses": list(SECOND["lb"]), "netns": self.netns("lb2")}
        ip_batch([f"netns add {self.netns('lb2')}"])
        self.sh("lb2", SYSCTLS + "ip link set lo up\n")
        ip_batch([f"link add lb0 netns {self.netns('lb2')} mtu {inner} type veth "
                  f"peer name lb2 netns {self.netns('router')} mtu {inner}"])
        self.sh("router", offloads_off("lb2") + f"ip link set lb2 xdpdrv obj {PASS} sec xdp.frags\n" +
                addresses("lb2", SECOND["router"], (24, 64)))
        self.sh("lb2", offloads_off("lb0") + addresses("lb0", SECOND["lb"], (24, 64)) +
                routes(None, SECOND["router"]))
        for node in self.backends:
            self.attach_decap(node, sources=[*self.info["tunnel_sources"], *SECOND["lb"]])

    def set_arms(self, arms):
        """The way from the balancer to the backends: 1, by the router; 2, by its own link to their switch."""
        if arms == 1:
            way = "ip address flush dev lb1 scope global\n" + routes(BACK_NETWORKS, FRONT["router"])
        elif arms == 2:
            gone = "".join(f"ip route del {net} via {gw} 2>/dev/null || true\n"
                           for net, gw in zip(BACK_NETWORKS, FRONT["router"]))
            way = addresses("lb1", BACK["lb"], (16, 64)) + gone
        else:
            raise LabError("the load balancer has 1 or 2 arms")
        self.sh("lb", "ip link set lb1 up\n" + way)
        self.info["arms"] = arms

    def restore(self, node):
        """The links of router or lb up again, and the IPv6 addresses and routes that went with them."""
        if node == "lb":
            self.sh(node, addresses("lb0", FRONT["lb"], (24, 64)) + routes(None, FRONT["router"]))
            self.set_arms(self.info["arms"])
        else:
            self.sh(node, addresses("lb0", FRONT["router"], (24, 64)) +
                    routes(SERVICE_NETWORKS, FRONT["lb"]))

    def attach_decap(self, node, sources=None, destinations=SERVICE_NETWORKS, gue_port=None):
        loader = BUILD / "shunt-loader"
        if not loader.exists():
            raise LabError(f"{loader} is missing: run make")
        allow = [a for s in sources or self.info["tunnel_sources"] for a in ("--allow-source", s)]
        allow += [a for d in destinations for a in ("--allow-destination", d)]
        if gue_port is not None:
            allow += ["--gue-port", gue_port]
        self.run(node, loader, "attach", "eth0", "--role", "decap", "--instance", self.instance(node), *allow)

    # ---- down ----

    def down(self):
        """Take everything away, whatever is left of it; nothing to do is no error."""
        spaces = self._leftover_netns()
        stop_processes(spaces)
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)
        mine = re.compile(re.escape(self.name) + r"-(lb2?|b\d+)(\..*)?")
        for parent in (PINS, Path("/run/shunt")):
            for entry in parent.iterdir() if parent.is_dir() else ():
                if mine.fullmatch(entry.name):
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.rmtree(self.dir, ignore_errors=True)

    def _leftover_netns(self):
        mine = re.compile(re.escape(f"shunt-{self.name}-") + r"(client|router|lb2?|b\d+)")
        return [p.name for p in NETNS.iterdir() if mine.fullmatch(p.name)] if NETNS.is_dir() else []


# ---- pieces of scripts ----

# Every namespace: no reverse-path filter (answers come from the service address by another way than it is routed),
# addresses usable at once.
SYSCTLS = """
for conf in all default; do
	echo 0 >/proc/sys/net/ipv4/conf/$conf/rp_filter
	echo 0 >/proc/sys/net/ipv6/conf/$conf/disable_ipv6
	echo 0 >/proc/sys/net/ipv6/conf/$conf/accept_dad
	echo 0 >/proc/sys/net/ipv6/conf/$conf/dad_transmits
	echo 0 >/proc/sys/net/ipv6/conf/$conf/accept_ra
	echo 0 >/proc/sys/net/ipv6/conf/$conf/router_solicitations
done
"""

# Like a switch made of metal: a bridge that calls iptables cuts frames to the length that their IP header says.
PLAIN_SWITCH = """
for file in /proc/sys/net/bridge/bridge-nf-call-*; do
	[ ! -e "$file" ] || echo 0 >"$file"
done
"""

# A backend holds the service address but does not say so to the network.
BACKEND_SYSCTLS = """
echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce
"""


def offloads_off(interface):
    """A stack leaves checksums and segmentation to the device; XDP would see packets before they are done."""
    return f"ethtool -K {interface} tx off tso off gso off gro off >/dev/null\n"


def addresses(interface, pair, lengths):
    """Both addresses on an interface, and the interface up."""
    script = "".join(f"ip address replace {with_length(a, lengths)} dev {interface}\n" for a in pair)
    return script + f"ip link set {interface} up\n"


def routes(networks, gateways):
    """A route of each family; networks None is the default route."""
    return "".join(f"ip route replace {network or 'default'} via {gateway}\n"
                   for network, gateway in zip(networks or (None, None), gateways))


def ip_batch(lines):
    run(["ip", "-batch", "-"], input="".join(line + "\n" for line in lines))


def stop_processes(spaces):
    """SIGTERM, and after two seconds SIGKILL, to all that runs in these namespaces."""
    for sign, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
        until = time.monotonic() + patience
        sent = set()
        while True:
            pids = {int(pid) for space in spaces
                    for pid in subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True,
                                              check=False).stdout.split()} - {os.getpid()}
            if not pids:
                return
            for pid in pids - sent:
                try:
                    os.kill(pid, sign)
                except ProcessLookupError:
                    pass
            sent |= pids
            if time.monotonic() > until:
                break
            time.sleep(0.02)


def labs():
    """Names of the labs that are up."""
    return sorted(p.parent.name for p in RUN.glob("*/lab.json"))
