"""RawBatch: a whole record batch that a source returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class RawBatch(NamedTuple):
    """A record batch (magic 2) for one partition, and the place in the source behind it.

    `data` is the whole batch, its header included; the CRC has to be right. Control batches are refused:
    leave them out. Batches with gaps (of compacted topics) and with log append time are taken: the worker
    builds them again with the same codec, as a broker would refuse or change them.

    `source_partition` and `source_offset` are JSON-like dicts. Once the batch is acknowledged, the source
    restarts from `source_offset`. A batch without an offset is covered by the next one of its source
    partition.
    """

    topic: str
    partition: int
    data: bytes | bytearray | memoryview
    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None
