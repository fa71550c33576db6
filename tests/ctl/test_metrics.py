# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shuntctl metrics is OpenMetrics text, whatever stands in the labels; and the reader that says so can say no."""

import openmetrics
import pytest
from conftest import only_json

HOSTILE = 'a"b\\c\ne}f,g=" {#'

STATUS = {"instance": HOSTILE, "daemon_version": "0.1.0", "healthy": True, "uptime": 5, "revision": 3,
          "capacities": {"services": 65536, "pools": 1024}, "used": {"services": 2, "pools": 1},
          "memory_bytes": 1 << 40, "memory_per_cpu_bytes": 0}
ANSWERS = {
    "Status": STATUS,
    "Counters": {"counters": [
        {"name": "drop_ttl", "class": "drop", "packets": 2**63 - 1, "description": "x"},
        {"name": HOSTILE, "class": "bug", "packets": 0, "description": HOSTILE}]},
    "ServiceList": {"services": [
        {"name": HOSTILE, "address": "192.0.2.10", "protocol": "tcp", "ports": "80", "pool": "web", "packets": 7,
         "bytes": 9},
        {"name": "b", "address": "192.0.2.11", "protocol": "tcp", "ports": "80", "pool": "web", "packets": 0,
         "bytes": 0}]},
    "PoolList": {"pools": [{"name": "web", "algorithm": "maglev", "slots": 4099, "backends": 1, "epoch": 4,
                            "digest": "0123456789abcdef", "activated": 1790000000, "published": True}]},
    "BackendList": {"backends": [
        {"pool": "web", "name": "web1", "address": "10.1.0.11", "weight": 1, "slots": 4099, "quota": 4099,
         "reachable": False, "state": "active", "packets": 3, "bytes": 4}]},
}


def test_it_is_open_metrics(ctl, fake):
    done = ctl("metrics", instance=fake(ANSWERS).instance)
    assert (done.returncode, done.stderr) == (0, "")
    families = openmetrics.parse(done.stdout)
    assert families["shunt_build"].samples == \
        {("_info", (("shunt_instance", HOSTILE), ("version", "0.1.0"))): 1}
    packets = families["shunt_packets"]
    assert (packets.type, packets.unit) == ("counter", "packets")
    assert packets.samples[("_total", (("class", "bug"), ("reason", HOSTILE)))] == 0
    assert "shunt_packets_total{class=\"drop\",reason=\"drop_ttl\"} 9223372036854775807\n" in done.stdout
    assert families["shunt_used"].samples[("", (("resource", "pools"),))] == 1
    assert families["shunt_service_bytes"].samples[("_total", (("service", HOSTILE),))] == 9
    assert families["shunt_pool_published"].samples == {("", (("pool", "web"),)): 1}
    assert families["shunt_backend_reachable"].samples == {("", (("backend", "web1"), ("pool", "web"))): 0}
    assert all(family.help and family.type for family in families.values())


def test_a_list_that_is_missing_leaves_no_half_output(ctl, fake):
    daemon = fake({**ANSWERS, "BackendList": {}})
    done = ctl("metrics", instance=daemon.instance)
    assert (done.returncode, done.stdout) == (3, "")
    assert only_json(ctl("-j", "metrics", instance=daemon.instance))["error"] == "Unreachable"


HEAD = "# TYPE a counter\n# HELP a b\n"


@pytest.mark.parametrize("text,why", [
    (HEAD + "a_total 1\n", "# EOF"),
    (HEAD + "a_total 1\n# EOF\n\n", "# EOF"),
    (HEAD + "a 1\n# EOF\n", "not a sample of counter"),
    (HEAD + "a_total -1\n# EOF\n", "below zero"),
    (HEAD + "a_total 1\na_total 2\n# EOF\n", "sample given twice"),
    (HEAD + "a_total{x=\"1\",x=\"2\"} 1\n# EOF\n", "label given twice"),
    (HEAD + "a_total{x=\"1\",} 1\n# EOF\n", "comma"),
    (HEAD + "a_total{x=\"\\t\"} 1\n# EOF\n", "bad label"),
    (HEAD + "a_total{x=\"\"\"} 1\n# EOF\n", "commas"),
    (HEAD + "a_total{x=1} 1\n# EOF\n", "bad label"),
    (HEAD + "a_total one\n# EOF\n", "bad number"),
    (HEAD + "a_total  1\n# EOF\n", "neither"),
    (HEAD + "\na_total 1\n# EOF\n", "neither"),
    ("a_total 1\n# EOF\n", "outside its family"),
    (HEAD + "a_total 1\n# HELP a c\n# EOF\n", "after samples"),
    (HEAD + "# TYPE b gauge\nb 1\na_total 1\n# EOF\n", "outside its family"),
    (HEAD + "# TYPE b gauge\nb 1\n# TYPE a counter\n# EOF\n", "in one piece"),
    (HEAD + "# UNIT a seconds\na_total 1\n# EOF\n", "unit"),
    ("# TYPE a info\na_info 2\n# EOF\n", "info is 1"),
    ("# TYPE a wonder\na 1\n# EOF\n", "unknown type"),
    ("# TYPE a gauge\n# HELP a \\x\na 1\n# EOF\n", "escape"),
    ("# TYPE a counter\n# TYPE a_total gauge\n# EOF\n", "share a sample name"),
])
def test_the_reader_refuses(text, why):
    with pytest.raises(openmetrics.Wrong, match=why):
        openmetrics.parse(text)
