"""The state of a process's flows and their partitions, as JSON, for `GET /status`.

Numbers that are unknown are None, never 0. Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from kafka_client import TopicPartition
from mirror.link import Link
from mirror.links import SupervisedLink
from mirror.quarantine import Quarantined
from mirror.status import PartitionStatus

Facts: TypeAlias = Mapping[str, Any]

STATUS_PATH = "/status"
COPYING = "copying"
STANDING_STILL = "standing still"
"""Records wait in the source, or it does not answer, and none was copied for `STALL_SECONDS`."""
QUARANTINED = "quarantined"
WAITING = "waiting"
"""The remote topic is to be created, or the position to be found."""


def flows_status(flows: Sequence[SupervisedLink]) -> Facts:
    """Return the state of all flows of the process."""
    return {"flows": [flow_status(flow) for flow in flows]}


def flow_status(flow: SupervisedLink) -> Facts:
    """Return the state of one flow.

    `rpo_seconds` is `Link.rpo_seconds`. `error` is why the flow is down; nothing is known of its partitions
    then.
    """
    link = None if flow.problem is not None else flow.link
    return {
        "flow": flow.settings.name,
        "state": "running" if flow.problem is None else "down" if flow.failure is not None else "opening",
        "error": None if flow.failure is None else f"{type(flow.failure).__name__}: {flow.failure}",
        "rpo_seconds": None if link is None else link.rpo_seconds(),
        "partitions": [] if link is None else list(_partitions(link)),
    }


def _partitions(link: Link) -> Iterable[Facts]:
    copied = {tp: _copied(tp, status) for tp, status in link.status().items()}
    quarantined = {tp: _quarantined(link, tp, entry) for tp, entry in link.quarantined.items()}
    waiting = {tp: _partition(tp, WAITING) for tp in link.waiting if tp not in quarantined}
    return [facts for _, facts in sorted((copied | quarantined | waiting).items())]


def _copied(tp: TopicPartition, status: PartitionStatus) -> Facts:
    return _partition(
        tp,
        COPYING if status.stalled is None else STANDING_STILL,
        position=status.position,
        lag_records=status.lag_records,
        lag_seconds=status.lag_seconds,
        rpo_seconds=status.rpo_seconds,
        standing_since=status.stalled_since,
        error=status.stalled or (status.silence and f"the source does not answer: {status.silence}"),
    )


def _quarantined(link: Link, tp: TopicPartition, entry: Quarantined) -> Facts:
    return _partition(
        tp,
        QUARANTINED,
        position=link.synced_position(tp),
        standing_since=entry.since,
        error=f"{entry.reason}: {entry.error.what}",
    )


def _partition(
    tp: TopicPartition,
    state: str,
    *,
    position: int | None = None,
    lag_records: int | None = None,
    lag_seconds: float | None = None,
    rpo_seconds: float | None = None,
    standing_since: float | None = None,
    error: str | None = None,
) -> Facts:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "state": state,
        "position": position,
        "lag_records": lag_records,
        "lag_seconds": lag_seconds,
        "rpo_seconds": rpo_seconds,
        "standing_since": standing_since,
        "error": error,
    }
