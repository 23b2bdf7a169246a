"""The metrics that `docs/metrics.md` lists, for a comparison with those of a registry."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from kafka_client.metrics.metrics import Metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

_SECTION = re.compile(
    r"^#### `([\w.]+):type=([\w-]+)((?:,[\w-]+=\*)*)`\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL
)
_ROW = re.compile(r"^\| (`[^|]+`) \|", re.MULTILINE)


def documented() -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """Return the metrics' names and their tags, by domain and type."""
    listed = {}
    for domain, type, tags, text in _SECTION.findall(PAGE.read_text(encoding="utf-8")):
        names = {name for row in _ROW.findall(text) for name in re.findall(r"`([^`]+)`", row)}
        listed[domain, type] = names, set(re.findall(r",([\w-]+)=", tags))
    return listed


def check_documented(metrics: Metrics, *types: str) -> None:
    """Assert that a registry has these types, with exactly the names and tags that the page lists."""
    names: dict[tuple[str, str], set[str]] = defaultdict(set)
    tags: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, _ in metrics.read():
        if name.type in types:
            names[name.domain, name.type].add(name.name)
            tags[name.domain, name.type].update(key for key, _ in name.tags)
    listed = documented()
    assert {type for _, type in names} == set(types)
    for key, registered in names.items():
        assert (registered, tags[key]) == listed.get(key), f"docs/metrics.md, {key}"
