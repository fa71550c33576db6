# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The alert rules that we ship speak of metrics, labels and values that there are."""

import re

import pytest
import yaml
from rawcontrol import ask
from shuntlab import TOP, web

RULES = yaml.safe_load((TOP / "docs/examples/alerts.yaml").read_text())["groups"][0]["rules"]
# `instance` is added by Prometheus.
GIVEN = {"instance"}


@pytest.fixture
def shunt(shunt):
    """All that can be measured is."""
    shunt.write({**web(2), "announce": {"table": 100}})
    return shunt


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


def test_rules_speak_of_what_there_is(running):
    names, values = metrics(running)
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


def test_alarms_are_off_when_all_is_well_and_told(running):
    alarms = ask(running, "Status")["alarms"]
    assert alarms and not any(alarms.values())
    text = running.ctl("metrics").stdout
    assert all(f'shunt_alarm{{alarm="{name}"}} 0\n' in text for name in alarms)
    running.config.write_text("nonsense")
    assert running.ctl("reload").returncode == 1
    assert 'shunt_alarm{alarm="document"} 1\n' in running.ctl("metrics").stdout
