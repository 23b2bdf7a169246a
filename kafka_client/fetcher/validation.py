"""Validation of positions against a new leader's log before anything is fetched from it (KIP-320).

A leader epoch that grew means that another broker leads, or the same one after it lost records. Since Fetch
12 a broker compares the epoch of the last record read itself; this is for older brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kafka_client.cluster.cluster import Client, is_retriable
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
from kafka_client.fetcher.epoch_ends import AskedEpoch, EpochEnd, epoch_ends
from kafka_client.fetcher.position import FetchPosition
from kafka_client.topic_partition import TopicPartition


class TruncationHandler(Protocol):
    """The handler of positions in a log that was truncated."""

    def diverged(self, position: FetchPosition, epoch: int, end_offset: int) -> None:
        """Handle a leader's log that diverges: it has `epoch`, the last common one, up to `end_offset`."""

    def made_ready(self) -> None:
        """Wake `fetch`: batches can be returned, or an error raised."""


async def validate_positions(
    client: Client,
    unvalidated: Iterable[FetchPosition],
    partitions: Mapping[TopicPartition, FetchPosition],
    handler: TruncationHandler,
) -> None:
    """Compare these positions with their leaders' logs, as far as they are still in `partitions`.

    Raises the last retriable error, with the leaders concerned to be looked up again.
    """
    by_node: dict[int, list[FetchPosition]] = {}
    for position in unvalidated:
        if position.fetch_offset >= 0:
            by_node.setdefault(position.node, []).append(position)
    failure: MillstreamError | None = None
    for node, positions in by_node.items():
        versions = [position.version for position in positions]
        ends = await _ask(client, node, positions)
        for position, version in zip(positions, versions, strict=True):
            if (
                partitions.get(position.tp) is position
                and position.version == version
                and position.unvalidated
            ):
                answer = ends.get(position.tp, EpochEnd(-1, -1))
                failure = _take_answer(position, answer, handler) or failure
    if failure is not None:
        raise failure


async def _ask(
    client: Client, node: int, positions: list[FetchPosition]
) -> Mapping[TopicPartition, EpochEnd | MillstreamError]:
    requests = {
        position.tp: AskedEpoch(position.fetch_epoch, position.leader_epoch) for position in positions
    }
    try:
        return await epoch_ends(client, node, requests)
    except MillstreamError as error:
        return dict.fromkeys(requests, error)


def _take_answer(
    position: FetchPosition, answer: EpochEnd | MillstreamError, handler: TruncationHandler
) -> MillstreamError | None:
    """Handle the leader's answer for one position; return a retriable error, or None."""
    if isinstance(answer, EpochEnd):
        if 0 <= position.diverges_at(*answer) < position.fetch_offset or answer.end_offset < 0:
            handler.diverged(position, *answer)
        else:
            position.validated()
    elif isinstance(answer, KafkaError) and answer.code == ErrorCode.UNSUPPORTED_VERSION:
        position.validated()  # The broker is older than KIP-320.
    elif is_retriable(answer):
        position.lose_leader()
        return answer
    else:
        position.park(answer)
        handler.made_ready()
    return None
