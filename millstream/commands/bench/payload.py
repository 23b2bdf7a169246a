"""What a benchmark writes: random records of one size, or records of a file."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from kafka_client.errors import ConfigError
from millstream.terminal.status import UsageError

_KINDS = 1_024
"""So many different records, taken in turn: more would be no harder to write."""
_SEED = 0


def random_payloads(size: int, seed: int = _SEED) -> list[bytes]:
    """Letters A to Z, as Kafka's tool writes them; the same ones in every run with the same seed."""
    source = random.Random(seed)
    return [bytes(source.choices(range(65, 91), k=size)) for _ in range(_KINDS if size else 1)]


def file_payloads(path: Path, delimiter: bytes) -> list[bytes]:
    """The records of a file, empty ones left out; ConfigError, or UsageError for a file without any."""
    try:
        found = [part for part in path.read_bytes().split(delimiter) if part]
    except OSError as error:
        raise ConfigError("--payload-file", path, f"cannot be read: {error.strerror}") from None
    if not found:
        raise UsageError(f"--payload-file {path} has no records in it")
    return found


def slices(payloads: list[bytes], total: int, size: int) -> Iterator[list[bytes]]:
    """`total` payloads, in turn, `size` at a time."""
    endless = cycle(payloads)
    for begin in range(0, total, size):
        yield list(islice(endless, min(size, total - begin)))
