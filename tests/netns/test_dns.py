# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""DNS over UDP: dnsmasq on the backends, dig in the client."""

import pytest
from balancer import wait_for

PORTS = range(20000, 20040)


@pytest.fixture(scope="module")
def dns(sites):
    """Two backends over IPv4, one over IPv6; each tells its name as the TXT record of who.test."""
    site = sites(backends=3)
    for backend in site.lab.backends:
        home = site.lab.dir / backend
        site.lab.run(backend, "dnsmasq", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--user=root",
                     f"--pid-file={home}/dnsmasq.pid", f"--txt-record=who.test,{backend}")
    pool = {b: (site.lab.address(b, v), 1) for b, v in zip(site.lab.backends, (4, 6, 4))}
    rows = [{"name": f"dns{v}", "address": site.lab.service(v), "protocol": "udp", "ports": [53], "pool": "web"}
            for v in (4, 6)]
    site.shunt.write({"web": pool}, rows)
    site.start()
    wait_for("dnsmasq listens", lambda: all(":53 " in site.lab.run(b, "ss", "-Hlun") for b in site.lab.backends))
    return site


@pytest.mark.parametrize("version", (4, 6))
def test_each_query_is_answered_by_the_backend_that_its_slot_names(dns, version):
    owners, client = dns.shunt.owners(), dns.lab.address("client", version)
    seen = set()
    for port in PORTS:
        slot = dns.shunt.slot(client, port, dns.lab.service(version), 53, len(owners), protocol=17)
        answer = dns.lab.run("client", "dig", "+short", "+tries=1", "+time=3", "-b", f"{client}#{port}",
                             f"@{dns.lab.service(version)}", "who.test", "TXT")
        assert answer.strip() == f'"{owners[slot]}"'
        seen.add(owners[slot])
    assert seen == set(dns.lab.backends)


def test_tcp_to_a_port_that_only_udp_has_is_dropped_and_counted(dns):
    before = dns.shunt.counters()["drop_unknown_port"]
    done = dns.lab.popen("client", "dig", "+tcp", "+tries=1", "+time=1", f"@{dns.lab.service(4)}", "who.test",
                         stdout=-3)
    assert done.wait(20) != 0
    assert dns.shunt.counters()["drop_unknown_port"] > before
