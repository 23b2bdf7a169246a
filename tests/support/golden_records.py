"""Records of internal topics as Kafka's own classes wrote them: what tests/java/GoldenRecords.java prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class GoldenRecord(NamedTuple):
    """A message: its class, the type that its key begins with, its bytes, and Kafka's JSON of it."""

    name: str
    kind: int
    version: int
    data: bytes
    json: Any


def read_golden(path: Path) -> Iterator[GoldenRecord]:
    """Yield the messages of a golden file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        name, kind, version, data, text = line.split(" ", 4)
        yield GoldenRecord(name, int(kind), int(version), bytes.fromhex(data), json.loads(text))
