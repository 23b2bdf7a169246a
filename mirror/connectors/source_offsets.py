"""Source offsets in MirrorMaker 2's form, so that a connector goes on where Kafka's stopped, and the reverse.

{"cluster": "dc1", "partition": 0, "topic": "flights"}  →  {"offset": 41}     the last copied record
{"group": "billing", "partition": 0, "topic": "flights"}  →  {"offset": 0}
{"sourceClusterAlias": "dc1", "targetClusterAlias": "dc2"}  →  {"offset": 0}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connect.api import ConnectError
from kafka_client import TopicPartition

OFFSET = "offset"
Partition = Mapping[str, Any]
Offset = Mapping[str, Any]


def source_partition(cluster: str, tp: TopicPartition) -> dict[str, Any]:
    """Return the source partition of a copied partition."""
    return {"cluster": cluster, "partition": tp.partition, "topic": tp.topic}


def last_copied(offset: Offset | None) -> int | None:
    """Return the offset of the last copied record, None if no record was copied."""
    last = None if offset is None else offset.get(OFFSET)
    return last if isinstance(last, int) and last >= 0 else None


def check_offsets(
    offsets: Sequence[tuple[Partition, Offset | None]],
    names: Sequence[str],
    *,
    has_partition: bool = False,
    only_zero: bool = False,
) -> None:
    """Raise ConnectError for an offset that a connector cannot use.

    `names` are the fields of a source partition that hold text. A removed offset (None) may have any source
    partition, so that an operator can remove invalid ones. Source: MirrorUtils, KIP-875.
    """
    for partition, offset in offsets:
        if offset is None:
            continue
        for name in names:
            if not isinstance(partition.get(name), str):
                raise ConnectError(f"source partition {dict(partition)} needs {name!r}, a text")
        if has_partition and not _is_number(partition.get("partition")):
            raise ConnectError(f"source partition {dict(partition)} needs 'partition', a number from 0 on")
        value = offset.get(OFFSET)
        if not _is_number(value) or (only_zero and value != 0):
            allowed = "0" if only_zero else "a number from 0 on"
            raise ConnectError(f"the offset of {dict(partition)} needs {OFFSET!r}, {allowed}; not {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
