"""Bugs to be found: each is a rule of the product taken away or bent, by a patch from here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from logd.broker.coordinator_log import CoordinatorLog
from logd.broker.replicas import Replicas
from logd.errors import ErrorCode
from logd.replication import Fetch, Follower, Leader, Truncate


@contextmanager
def truncates_by_high_watermark() -> Iterator[None]:
    """As Kafka did before KIP-101: back to the high watermark, and nothing said of leader epochs."""
    fetch = Follower._fetch

    def begin(self: Follower) -> Truncate:
        return Truncate(self.high_watermark)

    def without_epoch(self: Follower) -> Fetch:
        return fetch(self)._replace(last_fetched_epoch=-1)

    with mock.patch.object(Follower, "_begin", begin), mock.patch.object(Follower, "_fetch", without_epoch):
        yield


@contextmanager
def acknowledges_at_once() -> Iterator[None]:
    """Once it is in the leader's own log, whoever is in sync."""

    def acknowledgement(self: Leader, end_offset: int) -> ErrorCode:
        return ErrorCode.NONE

    with mock.patch.object(Leader, "acknowledgement", acknowledgement):
        yield


@contextmanager
def adopts_stray_logs() -> Iterator[None]:
    """A log found counts by its name, whatever topic it was of."""
    taken_in_hand = Replicas._taken_in_hand

    async def adopted(self: Replicas, topic: Any, index: int) -> Any:
        log = self.at_hand.get((topic.name, index))  # type: ignore[call-overload]
        if log is not None:
            log.topic_id = topic.topic_id
        return await taken_in_hand(self, topic, index)

    with mock.patch.object(Replicas, "_taken_in_hand", adopted):
        yield


@contextmanager
def coordinators_answer_at_once() -> Iterator[None]:
    """Before what they decided is replicated."""
    with (
        mock.patch.object(CoordinatorLog, "flushed", lambda self, appended=None: None),
        mock.patch.object(CoordinatorLog, "is_committed", lambda self, appended=None: True),
    ):
        yield
