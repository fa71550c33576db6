# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A strict reader of the OpenMetrics 1.0 text format, for the types that matter here: counter, gauge and info."""

import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(\{{[^\n]*\}})? (\S+)")
META = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) ([^\n]*)")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SUFFIXES = {"counter": ["_total", "_created"], "gauge": [""], "info": ["_info"]}


class Wrong(Exception):
    pass


def need(condition, line, why):
    if not condition:
        raise Wrong(f"{why}: {line!r}")


def unescape(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), text)


def labels(text, line):
    """'{a="b",c="d"}' as a dict."""
    found, at = {}, 1
    while text[at:] != "}":
        match = LABEL.match(text, at)
        need(match, line, "bad label")
        need(match[1] not in found, line, "label given twice")
        found[match[1]] = unescape(match[2])
        at = match.end()
        need(text[at] in ",}", line, "labels are not separated by commas")
        if text[at] == ",":
            at += 1
            need(text[at] != "}", line, "comma before the brace")
    return found


class Family:
    def __init__(self, name):
        self.name, self.type, self.unit, self.help = name, None, None, None
        self.samples = {}  # (suffix, labels) -> value

    def meta(self, what, text, line):
        need(not self.samples, line, "metadata after samples")
        need(getattr(self, what.lower()) is None, line, "metadata given twice")
        if what == "TYPE":
            need(text in SUFFIXES, line, "unknown type")
        if what == "UNIT":
            need(self.name.endswith(f"_{text}"), line, "the name does not end with the unit")
        if what == "HELP":
            need(re.fullmatch(r'([^\\"]|\\["\\n])*', text), line, "bad escape in help")
        setattr(self, what.lower(), text)

    def add(self, name, found, value, line):
        suffix = name[len(self.name):]
        need(suffix in SUFFIXES[self.type], line, f"not a sample of {self.type} {self.name}")
        need(self.type != "info" or (value == 1 and self.unit is None), line, "info is 1 and has no unit")
        need(self.type != "counter" or (value >= 0 and not math.isnan(value)), line, "counter below zero or NaN")
        key = (suffix, tuple(sorted(found.items())))
        need(key not in self.samples, line, "sample given twice")
        self.samples[key] = value


def parse(text):
    """{family name: Family}; Wrong where the text breaks the format."""
    need(text.endswith("\n# EOF\n") or text == "# EOF\n", text[-40:], "does not end with # EOF")
    families, current = {}, None
    for line in text.removesuffix("# EOF\n").splitlines():
        meta = META.fullmatch(line)
        if meta:
            if current is None or current.name != meta[2]:
                need(meta[2] not in families, line, "family is not in one piece")
                current = families[meta[2]] = Family(meta[2])
            current.meta(meta[1], meta[3], line)
            continue
        sample = SAMPLE.fullmatch(line)
        need(sample, line, "neither metadata nor sample")
        need(NUMBER.fullmatch(sample[3]) or sample[3] in ("NaN", "+Inf", "-Inf"), line, "bad number")
        need(current and current.type and sample[1].startswith(current.name), line, "sample outside its family")
        current.add(sample[1], labels(sample[2], line) if sample[2] else {}, float(sample[3]), line)
    check_clashes(families)
    return families


def check_clashes(families):
    """No sample name may be that of another family's sample."""
    names = [f.name + suffix for f in families.values() for suffix in SUFFIXES[f.type]]
    need(len(names) == len(set(names)), "", "two families share a sample name")
