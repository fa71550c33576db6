# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The alert rules that we ship speak of metrics, labels and values that there are."""

import re
import shutil
import subprocess

import pytest
import yaml
from rawcontrol import ask
from shuntlab import TOP, web

RULES = yaml.safe_load((TOP / "docs/examples/alerts.yaml").read_text())["groups"][0]["rules"]
# `instance` is added by Prometheus.
GIVEN = {"instance"}


def metrics(shunt):
    """{name: set of labels}, and all (label, value)."""
    names, values = {}, set()
    for line in shunt.ctl("metrics").stdout.splitlines():
        found = re.match(r"(shunt_\w+)(?:\{(.*)\})? ", line)
        if found:
            pairs = re.findall(r'(\w+)="([^"]*)"', found[2] or "")
            names.setdefault(found[1], set()).update(label for label, _ in pairs)
            values.update(pairs)
    return names, values


def down(shunt):
    """An instance of which a backend is down, so that there is that state too, and that announces."""
    made = {**web(2), "announce": {"table": 100}}
    made["pools"].append({**made["pools"][0], "name": "dead", "health": {
        "type": "tcp", "check-via": "direct", "port": 9, "interval": "300ms", "timeout": "200ms", "fall": 1, "panic": 100,
        "last-backend": "refuse"}})
    made["services"][1]["pool"] = "dead"
    shunt.write(made)
    shunt.start()
    shunt.wait(lambda: ask(shunt, "BackendList", pool="dead", name="web1")["backends"][0]["state"] == "down", "it is down")


def test_rules_speak_of_what_there_is(shunt):
    down(shunt)
    names, values = metrics(shunt)
    assert len(RULES) > 8
    for rule in RULES:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket") and rule["annotations"]["summary"]
        used = re.findall(r"shunt_\w+", rule["expr"])
        assert used and set(used) <= set(names), rule
        labels = set().union(*(names[name] for name in used)) | GIVEN
        text = rule["annotations"]["summary"]
        grouped = {word.strip() for group in re.findall(r"by \(([^)]*)\)", rule["expr"]) for word in group.split(",")}
        assert set(re.findall(r"\$labels\.(\w+)", text)) | grouped <= labels, rule
        for label, choice in re.findall(r'(\w+)=~?"([^"]+)"', rule["expr"]):
            for value in choice.split("|"):
                assert (label, value) in values, (rule, label, value)


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_expressions_are_whole(rule):
    """What can be said without Prometheus: words that it knows, brackets that fit, a comparison, a range where one is due."""
    expression = re.sub(r'"[^"]*"', '""', rule["expr"])
    for pair in ("()", "{}", "[]"):
        assert expression.count(pair[0]) == expression.count(pair[1]), rule
    words = set(re.findall(r"(?<![\w$])[a-z_]+(?=\s*\()", expression))
    assert words <= {"absent", "changes", "count", "increase", "rate", "sum", "by", "and", "on"}, rule
    for function in re.findall(r"(?:changes|increase|rate)\(([^()]*)\)", expression):
        assert re.search(r"\[\d+[smh]\]$", function), rule
    assert re.search(r"(==|>|<) *[\d.]+$", expression), rule
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    assert (rule["expr"].count("_total") > 0) == bool(re.search(r"(increase|rate)\(", expression)), rule


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (package prometheus) is not here")
def test_prometheus_reads_the_rules():
    done = subprocess.run(["promtool", "check", "rules", TOP / "docs/examples/alerts.yaml"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_balancer_on_no_interface_is_not_healthy(running):
    """The metric says what `status --check` says."""
    assert running.ctl("status", "--check").returncode == 1
    text = running.ctl("metrics").stdout
    assert "\nshunt_healthy 0\n" in text and "\nshunt_interfaces 0\n" in text


def test_alarms_are_off_when_all_is_well_and_told(running):
    alarms = ask(running, "Status")["alarms"]
    assert alarms and not any(alarms.values())
    text = running.ctl("metrics").stdout
    assert all(f'shunt_alarm{{alarm="{name}"}} 0\n' in text for name in alarms)
    running.config.write_text("nonsense")
    assert running.ctl("reload").returncode == 1
    assert 'shunt_alarm{alarm="document"} 1\n' in running.ctl("metrics").stdout
