"""What tests state about topics and groups; an AssertionError says what is there instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from kafka_client.topic_partition import TopicPartition
from millstream.testing.records import ReadRecord

Key: TypeAlias = Callable[[ReadRecord], object]

SHOWN_MAX = 10
"""Of duplicates, missing and unexpected keys."""


def exactly_once(records: Iterable[ReadRecord], key: Key | None, expected: Iterable[object] | None) -> None:
    """AssertionError unless each key is there once, and, with `expected`, these keys are there and no other.

    Without `key` it is the record's own.
    """
    seen: dict[object, list[ReadRecord]] = defaultdict(list)
    for record in records:
        seen[record.key if key is None else key(record)].append(record)
    faults = [
        f"{found!r} is there {len(places)} times: {', '.join(_place(record) for record in places)}"
        for found, places in seen.items()
        if len(places) > 1
    ]
    if expected is not None:
        wanted = dict.fromkeys(expected)
        faults += [f"{name!r} is missing" for name in wanted if name not in seen]
        faults += [
            f"{name!r} was not expected: {_place(seen[name][0])}" for name in seen if name not in wanted
        ]
    if faults:
        raise AssertionError(_told(faults))


def lag_told(group: str, unread: Mapping[TopicPartition, int]) -> str:
    """What a group that is behind has left to read."""
    if not unread:
        return f"group {group!r} has committed no offset"
    behind = [f"{count} record{'s' * (count != 1)} of {tp}" for tp, count in unread.items() if count]
    return f"group {group!r} has not read {', '.join(behind)}"


def _place(record: ReadRecord) -> str:
    return f"{record.topic}-{record.partition}@{record.offset}"


def _told(faults: Sequence[str]) -> str:
    more = len(faults) - SHOWN_MAX
    return "\n".join([*faults[:SHOWN_MAX], *([f"... and {more} more"] if more > 0 else [])])
