"""Partitions that stand still: records wait in the source, and none was copied for `STALL_SECONDS`.

This module has no clock and no tasks: callers pass the time in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kafka_client import TopicPartition

STALL_SECONDS = 30.0
NAMED_MAX = 3
"""Partitions that one line of the log names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A partition's progress: the offset after the last copied record, and how many offsets follow it.

    `lag_records` is None where the source does not say.
    """

    tp: TopicPartition
    copied: int
    lag_records: int | None


@dataclass(frozen=True, slots=True)
class Stall:
    """A partition that was not copied any further since `since`, and why."""

    tp: TopicPartition
    since: float
    reason: str


@dataclass(frozen=True, slots=True)
class StallChanges:
    """Partitions that began to stand still, and those that no longer do, since the last check."""

    started: tuple[Stall, ...]
    ended: tuple[Stall, ...]


class Stalls:
    """The partitions of one flow that stand still."""

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, tuple[int, float]] = {}
        """Partitions with something to copy: the offset where they are, and since when."""
        self.stalled: Mapping[TopicPartition, Stall] = {}

    def check(
        self, partitions: Iterable[Progress], now: float, reason_of: Callable[[TopicPartition], str]
    ) -> StallChanges:
        """Compare the partitions' progress with the last check's; `reason_of` is asked about stalls only."""
        before, waiting, stalled = self.stalled, {}, {}
        for progress in partitions:
            if progress.lag_records == 0:
                continue
            tp, copied = progress.tp, progress.copied
            was_at, since = self._waiting.get(tp, (copied, now))
            waiting[tp] = (copied, since if was_at == copied else now)
            if now - waiting[tp][1] >= STALL_SECONDS:
                stalled[tp] = Stall(tp, waiting[tp][1], reason_of(tp))
        self._waiting, self.stalled = waiting, stalled
        return StallChanges(
            tuple(stall for tp, stall in stalled.items() if tp not in before),
            tuple(stall for tp, stall in before.items() if tp not in stalled),
        )


def by_reason(stalls: Iterable[Stall], now: float) -> list[str]:
    """Return a line for each reason: what stands still, for how long at least, and why."""
    groups: dict[str, list[Stall]] = {}
    for stall in stalls:
        groups.setdefault(stall.reason, []).append(stall)
    return [_line(sorted(group, key=lambda stall: stall.tp), now) for group in groups.values()]


def _line(group: list[Stall], now: float) -> str:
    named = ", ".join(str(stall.tp) for stall in group[:NAMED_MAX])
    more = f" and {len(group) - NAMED_MAX} more" if len(group) > NAMED_MAX else ""
    seconds = now - max(stall.since for stall in group)
    return f"{named}{more} not copied for {seconds:,.0f} s: {group[0].reason}"
