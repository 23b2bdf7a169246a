"""Kafka's small text files: offset checkpoints, topic ids, the folder's properties.

    recovery-point-offset-checkpoint, log-start-offset-checkpoint, replication-offset-checkpoint:
        0                        version
        2                        number of lines
        flights 0 336776         topic partition offset
        flights 1 12
    partition.metadata:          meta.properties:
        version: 0                   version=1
        topic_id: <base64url>        cluster.id=… node.id=… directory.id=<base64url>

A checkpoint that does not parse counts as empty, with a warning: each of them only saves work or says what
recovery finds out again.
"""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from kafka_client.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


def encode_lines(lines: Iterable[str]) -> bytes:
    """The checkpoint file holding these lines."""
    rows = list(lines)
    return "\n".join(["0", str(len(rows)), *rows, ""]).encode()


def decode_lines(data: bytes) -> list[list[str]]:
    """The fields of each line; ValueError if it is no whole checkpoint of version 0."""
    version, count, *rows = data.decode().splitlines()
    if int(version) != 0 or len(rows) != int(count):
        raise ValueError(f"version {version} with {len(rows)} of {count} lines")
    return [row.split() for row in rows]


def read_lines(path: Path) -> list[list[str]]:
    """The fields of each line of a checkpoint file; none if it is missing or broken."""
    try:
        return decode_lines(path.read_bytes())
    except FileNotFoundError:
        return []
    except ValueError as error:
        logger.warning("ignoring checkpoint %s: %s", path, error)
        return []


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint."""
    return encode_lines(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """An offset checkpoint; empty if it is missing or broken."""
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partition, offset in read_lines(path)
        }
    except ValueError as error:
        logger.warning("ignoring checkpoint %s: %s", path, error)
        return {}


def new_uuid() -> bytes:
    """A version 4 uuid; os.urandom is asked since importing `uuid` takes a tenth of a start."""
    random = bytearray(os.urandom(16))
    random[6] = random[6] & 0x0F | 0x40
    random[8] = random[8] & 0x3F | 0x80
    return bytes(random)


def encode_uuid(value: bytes) -> str:
    """16 bytes as Kafka prints ids: base64url without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def decode_uuid(text: str) -> bytes:
    """The 16 bytes of a printed id; ValueError if it is none."""
    value = base64.urlsafe_b64decode(text + "==")
    if len(value) != 16:
        raise ValueError(f"{text!r} is no id")
    return value


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """`partition.metadata`."""
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()


def read_partition_metadata(path: Path) -> bytes | None:
    """The topic id in a `partition.metadata`; None if it is missing or broken."""
    try:
        fields = dict(line.split(": ", 1) for line in path.read_text().splitlines() if line)
        return decode_uuid(fields["topic_id"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError) as error:
        logger.warning("ignoring %s: %s", path, error)
        return None


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """A Java properties file; our keys and values need no escapes."""
    return "".join(f"{key}={value}\n" for key, value in properties.items()).encode()


def read_properties(path: Path) -> dict[str, str]:
    """A Java properties file; empty if it is missing."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (
        line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith(("#", "!"))
    )
    return {key.strip(): value.strip() for key, _, value in pairs}
