"""Kafka's small text files: offset checkpoints, topic ids, the directory's properties.

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
    """Return the content of a checkpoint file with these lines."""
    rows = list(lines)
    return "\n".join(["0", str(len(rows)), *rows, ""]).encode()


def decode_lines(data: bytes) -> list[list[str]]:
    """Return the fields of each line; raises ValueError if `data` is no whole checkpoint of version 0."""
    version, count, *rows = data.decode().splitlines()
    if int(version) != 0 or len(rows) != int(count):
        raise ValueError(f"version {version} with {len(rows)} of {count} lines")
    return [row.split() for row in rows]


def read_lines(path: Path) -> list[list[str]]:
    """Return the fields of each line of a checkpoint file; none if the file is missing or damaged."""
    try:
        return decode_lines(path.read_bytes())
    except FileNotFoundError:
        return []
    except ValueError as error:
        logger.warning("ignoring checkpoint %s: %s", path, error)
        return []


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return the content of an offset checkpoint."""
    return encode_lines(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return the offsets of a checkpoint; none if the file is missing or damaged."""
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partition, offset in read_lines(path)
        }
    except ValueError as error:
        logger.warning("ignoring checkpoint %s: %s", path, error)
        return {}


def new_uuid() -> bytes:
    """Return a random uuid (version 4). It uses os.urandom: importing `uuid` would take a tenth of a
    start.
    """
    random = bytearray(os.urandom(16))
    random[6] = random[6] & 0x0F | 0x40
    random[8] = random[8] & 0x3F | 0x80
    return bytes(random)


def encode_uuid(value: bytes) -> str:
    """Return 16 bytes as Kafka prints ids: base64url without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def decode_uuid(text: str) -> bytes:
    """Return the 16 bytes of a printed id; raises ValueError if the text is no id."""
    value = base64.urlsafe_b64decode(text + "==")
    if len(value) != 16:
        raise ValueError(f"{text!r} is no id")
    return value


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Return the content of a `partition.metadata` file."""
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()


def read_partition_metadata(path: Path) -> bytes | None:
    """Return the topic id in a `partition.metadata` file; None if the file is missing or damaged."""
    try:
        fields = dict(line.split(": ", 1) for line in path.read_text().splitlines() if line)
        return decode_uuid(fields["topic_id"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError) as error:
        logger.warning("ignoring %s: %s", path, error)
        return None


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Return the content of a Java properties file; these keys and values need no escapes."""
    return "".join(f"{key}={value}\n" for key, value in properties.items()).encode()


def read_properties(path: Path) -> dict[str, str]:
    """Return the pairs of a Java properties file; none if the file is missing."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (
        line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith(("#", "!"))
    )
    return {key.strip(): value.strip() for key, _, value in pairs}
