"""Fetch sessions on the wire: omitted partitions, repeated requests, and the order of partitions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire import encode_request
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

Make = Callable[..., str]
NOW = int(time.time() * 1000)
NAMES, IDS = 12, 13
LONG = 60_000


def topic_id(client: RawClient, name: str) -> bytes:
    result: bytes = (
        client.request(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12).topics[0].topic_id
    )
    return result


class Session:
    """The client's side of a session: partitions of one topic, requested by name or id."""

    def __init__(self, client: RawClient, topic: str, version: int = NAMES, **limits: int) -> None:
        self.client = client
        self.topic = topic
        self.key: str | bytes = topic_id(client, topic) if version >= IDS else topic
        self.version = version
        self.limits = {"min_bytes": 1, "max_bytes": 1 << 26, "max_wait_ms": 0, **limits}
        self.id = 0
        self.epoch = 0

    def send(
        self,
        positions: dict[int, int] | None = None,
        forget: list[int] | None = None,
        *,
        partition_bytes: int = 1 << 20,
        **changed: int,
    ) -> None:
        """Send a request that changes the offsets of some partitions."""
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_bytes)
            for index, offset in (positions or {}).items()
        ]
        request = FetchRequest(
            **{"session_id": self.id, "session_epoch": self.epoch, **self.limits, **changed},
            topics=[self._named(FetchTopic(), partitions)] if partitions else [],
            forgotten_topics_data=[self._named(ForgottenTopic(), forget)] if forget else [],
        )
        self.client.send(encode_request(request, self.version, 7, "raw"))

    def receive(self) -> Any:
        """Return the response, and move to the session's next epoch."""
        response = self.client.receive(1, self.version)
        if response.error_code == 0:
            self.id, self.epoch = response.session_id, self.epoch + 1
        return response

    def fetch(
        self, positions: dict[int, int] | None = None, forget: list[int] | None = None, **more: int
    ) -> Any:
        """Send a request, wait, and return the partitions of the response by index."""
        self.send(positions, forget, **more)
        response = self.receive()
        assert response.error_code == 0
        return {
            partition.partition_index: partition
            for topic in response.responses
            for partition in topic.partitions
        }

    def error(self, **changed: int) -> int:
        """Send a request that is refused and return the error code."""
        self.send(**changed)
        response = self.client.receive(1, self.version)
        assert response.responses == []
        code: int = response.error_code
        return code

    def _named(self, topic: Any, partitions: list[Any]) -> Any:
        topic.partitions = partitions
        if isinstance(self.key, bytes):
            topic.topic_id = self.key
        else:
            topic.topic = self.key
        return topic


def put(client: RawClient, topic: str, *partitions: int, size: int = 1) -> None:
    for partition in partitions:
        assert client.produce(topic, [(NOW, None, b"v" * size, ())], partition=partition).error_code == 0


@pytest.mark.parametrize("version", [7, 11, 12, 13, 18])
def test_only_news_is_told(client: RawClient, make_topic: Make, version: int) -> None:
    name = make_topic(partitions=3)
    put(client, name, 0)
    session = Session(client, name, version)
    first = session.fetch({0: 0, 1: 0, 2: 0})
    assert sorted(first) == [0, 1, 2]
    assert session.id != 0
    assert session.fetch({0: 1}) == {}, "all is known, and nothing is new"
    put(client, name, 2)
    answers = session.fetch()
    assert sorted(answers) == [2]
    assert answers[2].records and answers[2].high_watermark == 1
    assert sorted(session.fetch()) == [2], "asked for the same again, it gives the same again"
    assert session.fetch({2: 1}) == {}


def test_marks_that_move_are_told_without_records(client: RawClient, make_topic: Make) -> None:
    name = make_topic(partitions=2)
    put(client, name, 0, 0, 0)
    session = Session(client, name)
    session.fetch({0: 3, 1: 0})
    deleted = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
        ]
    )
    client.request(deleted, 2)
    answers = session.fetch()
    assert {index: answer.log_start_offset for index, answer in answers.items()} == {0: 2}
    assert answers[0].records == b""
    assert session.fetch() == {}
    put(client, name, 0)
    answers = session.fetch({0: 4})
    assert {index: answer.high_watermark for index, answer in answers.items()} == {0: 4}
    assert session.fetch() == {}


def test_errors_are_told_every_time_and_the_end_of_one_too(client: RawClient, make_topic: Make) -> None:
    name = make_topic(partitions=2)
    put(client, name, 0)
    session = Session(client, name)
    session.fetch({0: 1, 1: 0})
    for _ in range(2):
        answers = session.fetch({0: 9})
        assert {index: answer.error_code for index, answer in answers.items()} == {
            0: ErrorCode.OFFSET_OUT_OF_RANGE
        }
    answers = session.fetch({0: 1})
    assert answers[0].error_code == 0, "said though its marks are those told before the error"
    assert session.fetch() == {}


def test_partitions_are_added_and_forgotten(client: RawClient, make_topic: Make) -> None:
    name = make_topic(partitions=3)
    session = Session(client, name)
    session.fetch({0: 0})
    put(client, name, 0, 1, 2)
    assert sorted(session.fetch({1: 0})) == [0, 1]
    assert sorted(session.fetch({2: 0}, forget=[0])) == [1, 2]
    session.fetch(forget=[1, 2])
    assert session.id == 0, "with nothing left the session is closed"


@pytest.mark.parametrize("version", [NAMES, IDS])
def test_epochs(client: RawClient, make_topic: Make, version: int) -> None:
    session = Session(client, make_topic(), version)
    session.fetch({0: 0})
    session.fetch()
    assert session.error(session_epoch=1) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert session.error(session_epoch=3) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert session.error(session_id=session.id ^ 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert session.fetch() == {}, "what is refused leaves the session as it was"


def test_names_and_ids_do_not_mix(client: RawClient, make_topic: Make) -> None:
    session = Session(client, make_topic(), NAMES)
    session.fetch({0: 0})
    session.version = IDS
    assert session.error() == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    session.version = NAMES
    assert session.fetch() == {}


def test_epoch_minus_one_closes_and_zero_opens_anew(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    put(client, name, 0)
    session = Session(client, name)
    session.fetch({0: 0})
    old = session.id
    answers = session.fetch({0: 0}, session_epoch=-1)
    assert answers[0].records and session.id == 0, "answered in full, without a session"
    assert session.error(session_id=old, session_epoch=1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    session.fetch({0: 0}, session_epoch=0)
    first = session.id
    session.fetch({0: 0}, session_epoch=0)
    assert session.id not in (0, first)
    assert session.error(session_id=first, session_epoch=1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_is_nobodys_connection(client: RawClient, make_topic: Make, logd: LogdProcess) -> None:
    name = make_topic()
    session = Session(client, name)
    session.fetch({0: 0})
    put(client, name, 0)
    client.close()
    with RawClient(logd.port) as other:
        session.client = other
        assert sorted(session.fetch()) == [0]


def test_waiting_for_any_partition_of_the_session(
    client: RawClient, make_topic: Make, logd: LogdProcess
) -> None:
    name = make_topic(partitions=3)
    session = Session(client, name, max_wait_ms=LONG)
    session.fetch({0: 0, 1: 0, 2: 0}, max_wait_ms=0)
    session.send()
    with RawClient(logd.port) as producer:
        put(producer, name, 2)
    indexes = [p.partition_index for t in session.receive().responses for p in t.partitions]
    assert indexes == [2]
    assert session.fetch({2: 1}, max_wait_ms=30) == {}


def test_a_waiting_request_whose_session_goes_on_elsewhere(
    client: RawClient, make_topic: Make, logd: LogdProcess
) -> None:
    name = make_topic()
    session = Session(client, name)
    session.fetch({0: 0})
    session.send(max_wait_ms=LONG)
    with RawClient(logd.port) as other:
        twin = Session(other, name)
        twin.id, twin.epoch = session.id, session.epoch
        while twin.error() == ErrorCode.INVALID_FETCH_SESSION_EPOCH and twin.epoch == session.epoch:
            twin.epoch += 1  # the request that waits has taken the epoch
        put(other, name, 0)
    assert session.receive().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_topic_that_goes_and_does_not_come_back(
    client: RawClient, make_topic: Make, logd: LogdProcess
) -> None:
    """Deleting a topic ends the wait of the request that is under way; later requests wait as usual, as in
    Kafka.
    """
    deleted, stays = make_topic(), make_topic()
    session = Session(client, deleted)
    session.fetch({0: 0})
    session.topic = session.key = stays
    session.fetch({0: 0})
    session.send(max_wait_ms=LONG)
    with RawClient(logd.port) as admin:
        admin.request(DeleteTopicsRequest(topic_names=[deleted]), 5)
        codes = [(t.topic, p.error_code) for t in session.receive().responses for p in t.partitions]
        assert codes == [(deleted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
        session.send(max_wait_ms=LONG)
        put(admin, stays, 0)
    codes = [(t.topic, p.error_code) for t in session.receive().responses for p in t.partitions]
    assert sorted(codes) == sorted([(deleted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (stays, 0)])


def test_turns_go_round(client: RawClient, make_topic: Make) -> None:
    """Responses with room for one partition's batches serve the partitions that have records in turn."""
    name = make_topic(partitions=5)
    put(client, name, 0, 2, 4, size=1000)
    session = Session(client, name, max_bytes=1100)
    session.fetch(dict.fromkeys(range(5), 0), partition_bytes=1100)
    served = []
    for _ in range(6):
        served += [index for index, answer in session.fetch().items() if answer.records]
    assert served == [2, 4, 0, 2, 4, 0]


def test_a_partition_at_its_end_takes_nobodys_room(client: RawClient, make_topic: Make) -> None:
    name = make_topic(partitions=2)
    put(client, name, 1, size=5000)
    session = Session(client, name)
    answers = session.fetch({0: 0, 1: 0}, max_bytes=10)
    assert len(answers[1].records) > 5000, "the first batch there is comes whole"


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path / "logd", {"max.incremental.fetch.session.cache.slots": 2}) as process:
        create_topic(process, "t")
        yield process


def test_more_clients_than_slots(crowded: LogdProcess) -> None:
    clients = [RawClient(crowded.port) for _ in range(3)]
    sessions = [Session(client, "t") for client in clients]
    for session in sessions:
        assert sorted(session.fetch({0: 0})) == [0]
    assert [session.id != 0 for session in sessions] == [True, True, False]
    assert sessions[0].fetch() == {}
    sessions[0].fetch(session_epoch=-1)
    assert sorted(sessions[2].fetch({0: 0}, session_epoch=0)) == [0]
    assert sessions[2].id != 0
    for client in clients:
        client.close()
