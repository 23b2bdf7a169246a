"""The positions of the stores of global tables, in the format of Kafka's checkpoint files:

    0
    <number of lines>
    <topic> <partition> <next offset>
    ...

The file is written when the stores are closed. After a kill the stores may be ahead of it: then records from
these offsets on are applied again, with the same result.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kafka_client import TopicPartition

VERSION = "0"


class Checkpoint(NamedTuple):
    """The next offsets by partition, and the time (ms) at which they were written."""

    offsets: Mapping[TopicPartition, int]
    written_at: int


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the content of the file; an empty checkpoint if the file is missing or damaged."""
    try:
        version, count, *lines = path.read_text().splitlines()
        fields = [line.split(" ") for line in lines]
        if version == VERSION and int(count) == len(fields):
            offsets = {TopicPartition(topic, int(partition)): int(at) for topic, partition, at in fields}
            return Checkpoint(offsets, path.stat().st_mtime_ns // 1_000_000)
    except (OSError, ValueError):
        pass
    return Checkpoint({}, 0)


def write_checkpoint(
    path: Path, offsets: Mapping[TopicPartition, int], written_at: int | None = None
) -> None:
    """Replace the file atomically. ``written_at``: its time of modification (ms), by default now."""
    lines = [f"{tp.topic} {tp.partition} {offset}\n" for tp, offset in sorted(offsets.items())]
    aside = path.with_name(path.name + ".tmp")
    with open(aside, "w") as file:
        file.write(f"{VERSION}\n{len(lines)}\n{''.join(lines)}")
        file.flush()
        os.fsync(file.fileno())
    if written_at is not None:
        os.utime(aside, ns=(written_at * 1_000_000, written_at * 1_000_000))
    os.replace(aside, path)
