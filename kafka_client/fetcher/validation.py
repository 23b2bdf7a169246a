"""Positions validated against a new leader's log before anything is fetched from it (KIP-320).

A leader epoch that grew says that another broker leads, or the same one after it lost something. Since Fetch
12 a broker compares the epoch of what was read last by itself; this is for those that do not.
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
    """Decides what becomes of a position in a log that was truncated."""

    def diverged(self, held: FetchPosition, epoch: int, end_offset: int) -> None:
        """The leader's log is not the one that was read: `epoch`, the last of ours it has, ends there."""

    def made_ready(self) -> None:
        """Something can be handed out, or raised."""


async def validate_positions(
    client: Client,
    unvalidated: Iterable[FetchPosition],
    partitions: Mapping[TopicPartition, FetchPosition],
    handler: TruncationHandler,
) -> None:
    """Ask every leader about these positions, as far as they are among `partitions` still.

    Raises the last retriable error, with the leaders concerned to be found anew.
    """
    by_node: dict[int, list[FetchPosition]] = {}
    for held in unvalidated:
        if held.fetch_offset >= 0:
            by_node.setdefault(held.node, []).append(held)
    failure: MillstreamError | None = None
    for node, positions in by_node.items():
        versions = [held.version for held in positions]
        told = await _ask(client, node, positions)
        for held, version in zip(positions, versions, strict=True):
            if partitions.get(held.tp) is held and held.version == version and held.unvalidated:
                answer = told.get(held.tp, EpochEnd(-1, -1))
                failure = _take_answer(held, answer, handler) or failure
    if failure is not None:
        raise failure


async def _ask(
    client: Client, node: int, positions: list[FetchPosition]
) -> Mapping[TopicPartition, EpochEnd | MillstreamError]:
    asked = {held.tp: AskedEpoch(held.fetch_epoch, held.leader_epoch) for held in positions}
    try:
        return await epoch_ends(client, node, asked)
    except MillstreamError as error:
        return dict.fromkeys(asked, error)


def _take_answer(
    held: FetchPosition, answer: EpochEnd | MillstreamError, handler: TruncationHandler
) -> MillstreamError | None:
    """What the leader said of one position; returns what time may mend."""
    if isinstance(answer, EpochEnd):
        if 0 <= held.diverges_at(*answer) < held.fetch_offset or answer.end_offset < 0:
            handler.diverged(held, *answer)
        else:
            held.validated()
    elif isinstance(answer, KafkaError) and answer.code == ErrorCode.UNSUPPORTED_VERSION:
        held.validated()  # A broker from before KIP-320.
    elif is_retriable(answer):
        held.lose_leader()
        return answer
    else:
        held.park(answer)
        handler.made_ready()
    return None
