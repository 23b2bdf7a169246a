"""A principal that floods a broker, and another one beside it.

Both are counted in requests: alice has many connections, and sends without waiting for answers. Under a quota
each of her connections gets one answer with a wait of hours, so her share does not depend on the machine.
Bob sends one request after the other, and never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kafka_client.wire import encode_request
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support.client_quotas import alter_quotas, is_answered, produce
from tests.support.logd_process import LogdProcess
from tests.support.logged_in import ROOT, LoggedInClient, settings_with_logins

CONNECTIONS, PIPELINED = 10, 30
"""Alice's connections, and the requests that each of them sends at once."""
BOBS = 100
"""Bob's requests."""
SIZE = 8_000
HOUR_MS = 3_600_000
LATEST = -1

Flood = Callable[[LoggedInClient, str], None]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("flood"), settings_with_logins()) as logd:
        yield logd


@pytest.fixture
def root(broker: LogdProcess) -> Iterator[LoggedInClient]:
    with LoggedInClient(broker.port, ROOT) as client:
        yield client


def create(root: LoggedInClient, name: str) -> str:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    (result,) = root.request(CreateTopicsRequest(topics=[topic]), 7).topics
    assert result.error_code == 0, result.error_message
    return name


def end_offset(client: LoggedInClient, topic: str) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    return int(client.request(request, 7).topics[0].partitions[0].offset)


def write(client: LoggedInClient, topic: str) -> None:
    client.send_produce(topic, [(1_000, None, bytes(SIZE), ())])


def read(client: LoggedInClient, topic: str) -> None:
    client.send_fetch(topic)


def bobs_waits(broker: LogdProcess, topic: str) -> list[int]:
    """Return the waits of bob's requests, which are all served."""
    with LoggedInClient(broker.port, "bob") as bob:
        answers = [produce(bob, topic, SIZE) for _ in range(BOBS)]
    assert {each.responses[0].partition_responses[0].error_code for each in answers} == {0}
    return [each.throttle_time_ms for each in answers]


@pytest.mark.parametrize(
    ("flood", "api_key", "version", "quota"),
    [(write, 0, 9, "producer_byte_rate"), (read, 1, 12, "consumer_byte_rate")],
    ids=["produce", "fetch"],
)
def test_others_keep_their_throughput(
    broker: LogdProcess, root: LoggedInClient, flood: Flood, api_key: int, version: int, quota: str
) -> None:
    alices, bobs = create(root, f"alice-{quota}"), create(root, f"bob-{quota}")
    produce(root, alices, SIZE)
    alter_quotas(root, {"user": "alice"}, {quota: 1})
    with ExitStack() as stack:
        clients = [stack.enter_context(LoggedInClient(broker.port, "alice")) for _ in range(CONNECTIONS)]
        for alice in clients:
            for _ in range(PIPELINED):
                flood(alice, alices)
        waits = [alice.receive(api_key, version).throttle_time_ms for alice in clients]
        assert set(bobs_waits(broker, bobs)) == {0}
        assert min(waits) > HOUR_MS
        assert not any(is_answered(alice) for alice in clients), "all of them are muted"
        served = end_offset(root, alices) - 1 if flood is write else CONNECTIONS
        assert served == CONNECTIONS
        assert BOBS / (BOBS + served) > 0.8
    alter_quotas(root, {"user": "alice"}, {quota: None})


def test_without_a_quota_the_flood_is_served(broker: LogdProcess, root: LoggedInClient) -> None:
    topic = create(root, "no-quota")
    with LoggedInClient(broker.port, "alice") as alice:
        for _ in range(PIPELINED):
            write(alice, topic)
        assert {alice.receive(0, 9).throttle_time_ms for _ in range(PIPELINED)} == {0}
    assert end_offset(root, topic) == PIPELINED


def test_a_principal_has_one_quota_for_all_its_client_ids(broker: LogdProcess, root: LoggedInClient) -> None:
    """The story: a flood that changes its client id must not get more than the quota of its user."""
    topic = create(root, "many-ids")
    alter_quotas(root, {"user": "alice"}, {"producer_byte_rate": 1})
    waits = []
    for n in range(5):
        with LoggedInClient(broker.port, "alice", client_id=f"id-{n}") as alice:
            waits.append(produce(alice, topic, SIZE).throttle_time_ms)
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]
    alter_quotas(root, {"user": "alice"}, {"producer_byte_rate": None})


def test_a_flood_of_requests_gets_its_share_of_time(broker: LogdProcess, root: LoggedInClient) -> None:
    topic = create(root, "requests")
    alter_quotas(root, {"user": "alice"}, {"request_percentage": 1e-9})
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=LATEST)])]
    )
    with LoggedInClient(broker.port, "alice") as alice:
        alice.send(encode_request(request, 7, 7, "raw") * PIPELINED)
        assert alice.receive(2, 7).throttle_time_ms == 1_000, "a second at most, as in Kafka"
        assert set(bobs_waits(broker, topic)) == {0}
    alter_quotas(root, {"user": "alice"}, {"request_percentage": None})
