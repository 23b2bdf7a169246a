"""How far the stores of global tables are, in Kafka's own form of a checkpoint file:

    0
    <number of lines>
    <topic> <partition> <next offset>
    ...

It is written once the stores are closed, and what is in them may be ahead of it after a kill: the topics'
records are applied again from here on, which ends with the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kafka_client import TopicPartition

VERSION = "0"


class Checkpoint(NamedTuple):
    """Next offsets by partition, and when they were written, ms."""

    offsets: Mapping[TopicPartition, int]
    written_at: int


def read_checkpoint(path: Path) -> Checkpoint:
    """What the file says; nothing if there is none, or it cannot be read."""
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
    """Write the file whole, in the place of an earlier one. ``written_at``: ms, the time now unless given."""
    lines = [f"{tp.topic} {tp.partition} {offset}\n" for tp, offset in sorted(offsets.items())]
    aside = path.with_name(path.name + ".tmp")
    with open(aside, "w") as file:
        file.write(f"{VERSION}\n{len(lines)}\n{''.join(lines)}")
        file.flush()
        os.fsync(file.fileno())
    if written_at is not None:
        os.utime(aside, ns=(written_at * 1_000_000, written_at * 1_000_000))
    os.replace(aside, path)
