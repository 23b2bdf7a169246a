"""Where a read starts and ends, as its options say: a bound for all partitions, for topics or for partitions.

The JSON forms are those of Spark's Kafka source. `ranges` resolves the bounds to offsets in the log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from kafka_client.errors import ConfigError
from kafka_client.topic_partition import TopicPartition

_T = TypeVar("_T")
Which = Literal["starting", "ending"]


class OffsetBound(NamedTuple):
    """An offset as the user names it.

    An end of the log, a number, the first offset at or after a time in ms, or the group's committed offset.
    """

    kind: Literal["earliest", "latest", "offset", "timestamp", "group"]
    value: int = -1


EARLIEST = OffsetBound("earliest")
LATEST = OffsetBound("latest")
GROUP = OffsetBound("group")
_WORDS = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class OffsetChoice:
    """A bound for all partitions, or bounds for topics and partitions that name all that are read."""

    everywhere: OffsetBound | None = None
    each: Mapping[TopicPartition, OffsetBound] | None = None
    topics: Mapping[str, OffsetBound] = field(default_factory=dict)

    def bounds(self, tps: Iterable[TopicPartition], key: str) -> dict[TopicPartition, OffsetBound]:
        """Return the bound of each partition that is read.

        Raises ConfigError for `key` unless the bounds name exactly these partitions.
        """
        read = list(tps)
        if self.everywhere is not None:
            return dict.fromkeys(read, self.everywhere)
        each = self.each or {}
        extra = [str(tp) for tp in sorted(each.keys() - set(read))]
        extra += sorted(self.topics.keys() - {tp.topic for tp in read})
        if extra:
            raise ConfigError(
                key, ", ".join(extra), "names partitions that are not read: name those that are"
            )
        missing = [str(tp) for tp in read if tp not in each and tp.topic not in self.topics]
        if missing:
            remedy = "name all partitions, -2 is earliest, -1 latest"
            raise ConfigError(key, "", f"names no offset for {', '.join(missing)}; {remedy}")
        return {tp: each[tp] if tp in each else self.topics[tp.topic] for tp in read}

    def named(self) -> Iterable[tuple[str, OffsetBound]]:
        """Yield the bounds that the option names, each with its topic or partition."""
        yield from self.topics.items()
        yield from ((str(tp), bound) for tp, bound in (self.each or {}).items())


def parse_choice(values: Mapping[str, str], which: Which, default: OffsetBound) -> OffsetChoice:
    """Return the bounds of options in lower case.

    As in Spark, `…Timestamp` overrides `…OffsetsByTimestamp`, which overrides `…Offsets`. Raises ConfigError.
    """
    moment = values.get(f"{which}timestamp")
    if moment is not None:
        return OffsetChoice(everywhere=OffsetBound("timestamp", _moment(f"{which}Timestamp", moment)))
    moments = values.get(f"{which}offsetsbytimestamp")
    if moments is not None:
        return parse_json(f"{which}OffsetsByTimestamp", moments, lambda parsed: _per_topic(parsed, _at_time))
    offsets = values.get(f"{which}offsets")
    if offsets is None:
        return OffsetChoice(everywhere=default)
    word = offsets.strip().lower()
    if word in _WORDS:
        return OffsetChoice(everywhere=_WORDS[word])
    if word == "group" and which == "starting":
        return OffsetChoice(everywhere=GROUP)
    return parse_json(f"{which}Offsets", offsets, lambda parsed: _per_topic(parsed, _at_offset))


def check_batch(starting: OffsetChoice, ending: OffsetChoice) -> None:
    """Raise ConfigError if a batch read starts at latest, ends at earliest, or ends before its start."""
    if starting.everywhere == LATEST:
        raise ConfigError("startingOffsets", "latest", "a batch read may start at earliest or at offsets")
    if ending.everywhere == EARLIEST:
        raise ConfigError("endingOffsets", "earliest", "a batch read may end at latest or at offsets")
    for name, bound in starting.named():
        if bound == LATEST:
            raise ConfigError("startingOffsets", name, "a batch read may not start at latest (-1)")
    for name, bound in ending.named():
        if bound == EARLIEST:
            raise ConfigError("endingOffsets", name, "a batch read may not end at earliest (-2)")
    if starting.each and ending.each and not starting.topics and not ending.topics:
        _check_pairs(starting.each, ending.each)


def _check_pairs(
    starts: Mapping[TopicPartition, OffsetBound], ends: Mapping[TopicPartition, OffsetBound]
) -> None:
    differing = sorted(starts.keys() ^ ends.keys())
    if differing:
        names = ", ".join(map(str, differing))
        raise ConfigError("endingOffsets", names, "start and end must name the same partitions")
    for tp, start in starts.items():
        end = ends[tp]
        if start.kind == end.kind in ("offset", "timestamp") and start.value > end.value:
            raise ConfigError(
                "startingOffsets", start.value, f"is greater than the end {end.value} for {tp}: exchange them"
            )


def parse_json(key: str, text: str, read: Callable[[Any], _T]) -> _T:
    """Return what `read` makes of JSON without repeated names; raises ConfigError with an example."""
    try:
        return read(json.loads(text, object_pairs_hook=_without_repetition))
    except _Repeated as error:
        raise ConfigError(key, text, f"names {error} twice: name it once") from None
    except (ValueError, TypeError, AttributeError):
        example = '{"topic": [0, 1]}' if key == "assign" else '{"topic": {"0": 23, "1": -2}}'
        raise ConfigError(key, text, f"JSON such as {example} is wanted") from None


class _Repeated(Exception):
    """A name that a JSON object has twice."""


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for name, value in pairs:
        if name in parsed:
            raise _Repeated(name)
        parsed[name] = value
    return parsed


def _per_topic(parsed: Any, bound_of: Callable[[int], OffsetBound]) -> OffsetChoice:
    topics: dict[str, OffsetBound] = {}
    each: dict[TopicPartition, OffsetBound] = {}
    for topic, bounds in parsed.items():
        if isinstance(bounds, str) and bound_of is _at_offset:
            topics[topic] = _WORDS.get(bounds.lower()) or _refuse()
            continue
        for partition, number in bounds.items():
            each[TopicPartition(topic, whole(partition))] = bound_of(whole(number))
    return OffsetChoice(each=each, topics=topics)


def whole(value: object) -> int:
    """Return a JSON integer, which may be written as a string; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(value)
    return int(value)


def _refuse() -> OffsetBound:
    raise ValueError


def _at_offset(number: int) -> OffsetBound:
    if number < -2:
        raise ValueError
    return {-2: EARLIEST, -1: LATEST}.get(number, OffsetBound("offset", number))


def _at_time(ms: int) -> OffsetBound:
    if ms < 0:  # -1 and -2 would be the log's ends to the broker
        raise ValueError
    return OffsetBound("timestamp", ms)


def _moment(key: str, text: str) -> int:
    try:
        ms = int(text)
    except ValueError:
        ms = -1
    if ms < 0:
        raise ConfigError(key, text, "milliseconds since 1970 are wanted")
    return ms
