"""Assertions about topics and groups; their AssertionErrors name what is there instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from kafka_client.topic_partition import TopicPartition
from millstream.testing.records import ReadRecord

Key: TypeAlias = Callable[[ReadRecord], object]

SHOWN_MAX = 10
"""The number of faults (duplicate, missing and unexpected keys) that an error lists."""


def exactly_once(records: Iterable[ReadRecord], key: Key | None, expected: Iterable[object] | None) -> None:
    """Raise AssertionError unless each key occurs once and, with `expected`, the keys are exactly those.

    Without `key`, the key is the record's own.
    """
    places_by_key: dict[object, list[ReadRecord]] = defaultdict(list)
    for record in records:
        places_by_key[record.key if key is None else key(record)].append(record)
    faults = [
        f"{name!r} is there {len(places)} times: {', '.join(_place(record) for record in places)}"
        for name, places in places_by_key.items()
        if len(places) > 1
    ]
    if expected is not None:
        expected_keys = dict.fromkeys(expected)
        faults += [f"{name!r} is missing" for name in expected_keys if name not in places_by_key]
        faults += [
            f"{name!r} was not expected: {_place(places_by_key[name][0])}"
            for name in places_by_key
            if name not in expected_keys
        ]
    if faults:
        raise AssertionError(_listed(faults))


def lag_told(group: str, unread: Mapping[TopicPartition, int]) -> str:
    """Return a sentence that names the records which a lagging group has not read."""
    if not unread:
        return f"group {group!r} has committed no offset"
    behind = [f"{count} record{'s' * (count != 1)} of {tp}" for tp, count in unread.items() if count]
    return f"group {group!r} has not read {', '.join(behind)}"


def _place(record: ReadRecord) -> str:
    return f"{record.topic}-{record.partition}@{record.offset}"


def _listed(faults: Sequence[str]) -> str:
    more = len(faults) - SHOWN_MAX
    return "\n".join([*faults[:SHOWN_MAX], *([f"... and {more} more"] if more > 0 else [])])
