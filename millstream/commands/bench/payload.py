"""The payloads a benchmark writes: random records of one size, or records of a file."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from kafka_client.errors import ConfigError
from millstream.terminal.status import UsageError

_KINDS = 1_024
"""The number of different random records, which are written in turn."""
_SEED = 0


def random_payloads(size: int, seed: int = _SEED) -> list[bytes]:
    """Return payloads of `size` letters A to Z, as in Kafka's tool. The same seed gives the same letters."""
    source = random.Random(seed)
    return [bytes(source.choices(range(65, 91), k=size)) for _ in range(_KINDS if size else 1)]


def file_payloads(path: Path, delimiter: bytes) -> list[bytes]:
    """Return the non-empty records of a file.

    Raises ConfigError if the file cannot be read, and UsageError if it has no records.
    """
    try:
        payloads = [part for part in path.read_bytes().split(delimiter) if part]
    except OSError as error:
        raise ConfigError("--payload-file", path, f"cannot be read: {error.strerror}") from None
    if not payloads:
        raise UsageError(f"--payload-file {path} has no records in it")
    return payloads


def slices(payloads: list[bytes], total: int, size: int) -> Iterator[list[bytes]]:
    """Yield `total` payloads in lists of at most `size`, repeating `payloads` in turn."""
    endless = cycle(payloads)
    for begin in range(0, total, size):
        yield list(islice(endless, min(size, total - begin)))
