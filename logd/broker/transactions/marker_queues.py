"""Markers for partitions that other brokers lead, gathered into WriteTxnMarkers: a queue for each broker.

Markers that arrive while requests are under way go with the next request. A marker that cannot be written,
for any reason, is returned with MarkerDelayed. Its coordinator partition retries after a pause, with the
leader of that time. A coordinator that resigns cancels its waiting markers, which are then not sent.

A request that was abandoned, or whose marker was cancelled, may still arrive long after the transaction is
complete. Each marker therefore carries facts that keep it from ending a later transaction:
- the leader epoch it is for: a broker that leads again, after others did, refuses it;
- the transaction's number: the leader that has written its marker in this epoch does not write it again;
- the topic's id: leader epochs begin at 0 again if a topic is deleted and created again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, RequestTimedOut, error_for
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from logd.broker.coordinators.peer_queue import IN_FLIGHT_MAX, Bounds, PeerQueue
from logd.broker.coordinators.peers import NO_LEADER, Leaders, Leadership, Peers
from logd.broker.transactions.marker_outcome import OVERTAKEN, Outcome
from logd.broker.work.periodic import PeriodicTasks, report

MARKERS_PER_REQUEST = 100
"""Most partitions named in one request: a longer one would keep the other broker's clients waiting."""
MARKERS_QUEUED_MAX = 10_000
"""Most markers that wait for one broker; beyond that, `MarkerDelayed` has the coordinator come again."""

log = logging.getLogger("logd.broker")


class MarkerDelayed(KafkaError):
    """The partition's leader has not written the marker: try again in a while."""


class _Queued(NamedTuple):
    where: TopicPartition
    outcome: Outcome
    leadership: Leadership
    written: asyncio.Future[None]

    @property
    def is_wanted(self) -> bool:
        """True if its coordinator has not given it up."""
        return not self.written.done()

    @property
    def subject(self) -> tuple[int, Outcome]:
        """Answers go by producer id and partition."""
        return self.outcome.identity.producer_id, self.outcome


class MarkerQueues:
    """The queues of markers, one for each broker that a marker was sent to.

    `NONE` are the statistics of a standalone broker.
    """

    NONE: ClassVar[dict[str, int]] = {
        "markers_queued": 0,
        "markers_queued_max": MARKERS_QUEUED_MAX,
        "markers_in_flight": 0,
        "markers_in_flight_max": IN_FLIGHT_MAX,
    }

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._senders: dict[int, _MarkerSender] = {}
        self._rounds = PeriodicTasks()

    def send(self, leadership: Leadership, where: TopicPartition, outcome: Outcome) -> asyncio.Future[None]:
        """Have the leader write a marker; done once it has, or needs it no more. Cancel it to give it up.

        The future fails with MarkerDelayed, which is raised at once where the queue is full or there is no
        leader; with KafkaError for an error that does not go away by itself.
        """
        broker_id = leadership.leader
        if broker_id == NO_LEADER:
            raise MarkerDelayed(ErrorCode.LEADER_NOT_AVAILABLE, f"{where} has no leader")
        sender = self._senders.get(broker_id)
        if sender is None:
            sender = self._senders[broker_id] = _MarkerSender(broker_id, self._peers, self._rounds)
        return sender.send(leadership, where, outcome)

    def leaders_changed(self, leaders: Leaders) -> None:
        """Give back what waits for a leader whose term is over: it may not answer, and refuses the marker."""
        for sender in self._senders.values():
            moved = [
                queued
                for queued in sender.queue.unanswered()
                if leaders.leadership_of(queued.where) != queued.leadership
            ]
            sender.give_back(moved)

    def statistics(self) -> dict[str, int]:
        """Return the longest queue of markers for a broker, and the most requests in flight to one.

        Each comes with the bound per broker.
        """
        queues = [sender.queue for sender in self._senders.values()]
        return {
            **self.NONE,
            "markers_queued": max((len(queue) for queue in queues), default=0),
            "markers_in_flight": max((queue.in_flight for queue in queues), default=0),
        }

    async def stop(self) -> None:
        """End; call it once the coordinators have ended."""
        await self._rounds.stop()


class _MarkerSender:
    """To one broker."""

    def __init__(self, broker_id: int, peers: Peers, rounds: PeriodicTasks) -> None:
        self._broker_id = broker_id
        self._peers = peers
        self.queue = PeerQueue(self._send, rounds, Bounds(MARKERS_QUEUED_MAX, MARKERS_PER_REQUEST))

    def send(self, leadership: Leadership, where: TopicPartition, outcome: Outcome) -> asyncio.Future[None]:
        """See `MarkerQueues.send`."""
        if not self.queue.has_room():
            raise MarkerDelayed(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"{len(self.queue)} markers wait for broker {self._broker_id}",
            )
        queued = _Queued(where, outcome, leadership, asyncio.get_running_loop().create_future())
        queued.written.add_done_callback(_retrieve_error)
        self.queue.add(queued)
        return queued.written

    async def _send(self, batch: list[_Queued]) -> None:
        try:
            answer = await self._peers.request(self._broker_id, _request(batch))
            assert isinstance(answer, WriteTxnMarkersResponse)
            self._answered(batch, _codes(answer))
        except (ConnectionClosed, RequestTimedOut, KafkaError) as error:
            log.warning("broker %d may not have written %d markers: %s", self._broker_id, len(batch), error)
        except Exception as error:
            report(f"markers for broker {self._broker_id}", error)
        finally:
            self.give_back(batch)

    def give_back(self, batch: Sequence[_Queued]) -> None:
        """Have the coordinators of what is not written come again."""
        for where, _, _, written in batch:
            if not written.done():
                message = f"broker {self._broker_id} has not answered for the marker in {where}"
                written.set_exception(MarkerDelayed(ErrorCode.NETWORK_EXCEPTION, message))

    def _answered(self, batch: Sequence[_Queued], codes: Mapping[tuple[int, TopicPartition], int]) -> None:
        for where, outcome, _, written in batch:
            code = codes.get((outcome.identity.producer_id, where))
            if written.done() or code is None:
                continue
            if code == ErrorCode.NONE:
                written.set_result(None)
            elif code in OVERTAKEN:
                log.warning(
                    "%s: transaction marker no longer needed, skipped: %s", where, ErrorCode(code).name
                )
                written.set_result(None)
            else:
                written.set_exception(_refusal(code, where, self._broker_id))


def _refusal(code: int, where: TopicPartition, broker_id: int) -> KafkaError:
    message = f"broker {broker_id} does not write a marker into {where.topic}-{where.partition}"
    error = error_for(code, message)
    return MarkerDelayed(error.code, message) if error.retriable else error


def _retrieve_error(written: asyncio.Future[None]) -> None:
    """Retrieve a failure that a resigned coordinator does not, so that asyncio does not report it."""
    if not written.cancelled():
        written.exception()


def _request(batch: Sequence[_Queued]) -> WriteTxnMarkersRequest:
    by_outcome: dict[Outcome, dict[tuple[str, bytes], WritableTxnMarkerTopic]] = {}
    for where, outcome, leadership, _ in batch:
        topics = by_outcome.setdefault(outcome, {})
        key = where.topic, leadership.topic_id
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = WritableTxnMarkerTopic(name=where.topic, topic_id=leadership.topic_id)
        topic.partition_indexes.append(where.partition)
        topic.leader_epochs.append(leadership.epoch)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=outcome.identity.producer_id,
                producer_epoch=outcome.identity.epoch,
                transaction_result=outcome.commit,
                topics=list(topics.values()),
                coordinator_epoch=outcome.coordinator_epoch,
                transaction_version=outcome.transaction_version,
                transaction_number=outcome.transaction_number,
            )
            for outcome, topics in by_outcome.items()
        ]
    )


def _codes(answer: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], int]:
    return {
        (marker.producer_id, TopicPartition(topic.name, partition.partition_index)): partition.error_code
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
