from __future__ import annotations

import asyncio

import pytest

from kafka_client import Client, ClusterMetadata, TopicPartition
from kafka_client.cluster.pool import parse_servers
from kafka_client.errors import ConfigError, ConnectionClosed, ErrorCode, KafkaError, RequestTimedOut
from kafka_client.group.coordinator import ask_coordinator
from kafka_client.wire import ApiKey, encode
from kafka_client.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafka_client.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafka_client.wire.messages.find_coordinator import FindCoordinatorResponse
from kafka_client.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_client.wire.messages.metadata import MetadataResponse
from tests.kafka_client.fake_broker import CUT, SILENCE, FakeBroker, ReceivedRequest
from tests.kafka_client.running import QUICK, run
from tests.support.ports import free_port
from tests.support.waiting import until


async def test_many_callers_share_one_metadata_request() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        broker.topics = {"a": {0: 1}, "b": {0: 1}}
        before = broker.count(ApiKey.METADATA)
        topics = await asyncio.gather(*(client.topic(name) for name in "abababab"))
        assert [topic.name for topic in topics] == list("abababab")
        assert broker.count(ApiKey.METADATA) == before + 1
        await client.topic("a")
        assert broker.count(ApiKey.METADATA) == before + 1


async def test_stale_metadata_is_asked_for_again() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        tp = TopicPartition("t", 0)
        assert await client.leader(tp) == 1
        before = broker.count(ApiKey.METADATA)
        client.invalidate_metadata()
        assert await client.leader(tp) == 1
        assert broker.count(ApiKey.METADATA) == before + 1


async def test_a_broker_that_is_cut_off_is_not_the_only_one_asked() -> None:
    """Metadata is asked of several brokers: one that is cut off keeps reporting its old view."""
    nodes: dict[int, FakeBroker] = {}
    cut_off, other = FakeBroker(1, nodes), FakeBroker(2, nodes)
    nodes |= {1: cut_off, 2: other}
    async with cut_off, other, Client(cut_off.bootstrap, **QUICK) as client:
        tp = TopicPartition("t", 0)
        assert await client.leader(tp) == 1
        await client.connection(2, lane="as producers have it")
        cut_off.leader_epochs, other.leader_epochs = {"t": {0: 1}}, {"t": {0: 2}}
        other.topics = {"t": {0: 2}}
        for _ in range(2):  # either broker may be the one that is asked
            client.invalidate_metadata()
            await client.leader(tp)
        assert await client.leader(tp) == 2
        client.invalidate_metadata()
        assert await client.leader(tp) == 2, "the newer leader epoch counts"


async def test_a_broker_that_is_gone_is_not_asked_again_and_again() -> None:
    nodes: dict[int, FakeBroker] = {}
    stays, goes = FakeBroker(1, nodes), FakeBroker(2, nodes)
    nodes |= {1: stays, 2: goes}
    async with stays:
        async with goes:
            client = await Client(stays.bootstrap, **QUICK).connect()
            await client.connection(2, lane="as producers have it")
        for _ in range(3):
            client.invalidate_metadata()
            assert await client.leader(TopicPartition("t", 0)) == 1
        await client.close()


async def test_metadata_too_old_is_asked_for_again() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, metadata_max_age_ms=0) as client:
        before = broker.count(ApiKey.METADATA)
        await client.metadata(["t"])
        await client.metadata(["t"])
        assert broker.count(ApiKey.METADATA) == before + 2


async def test_an_unknown_topic_is_named() -> None:
    async with FakeBroker() as broker:
        async with Client(broker.bootstrap, **QUICK) as client:
            with pytest.raises(KafkaError, match="'nowhere'") as raised:
                await client.metadata(["t", "nowhere"])
            assert raised.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            metadata = await client.metadata(["t", "nowhere"], allow_missing=True)
            assert set(metadata.topics) == {"t"}
            with pytest.raises(KafkaError, match="t-5"):
                await client.leader(TopicPartition("t", 5))


async def test_a_topic_that_appears_while_it_is_waited_for_is_found() -> None:
    async with (
        FakeBroker() as broker,
        Client(broker.bootstrap, **{**QUICK, "missing_topic_wait_ms": 10_000}) as client,
    ):

        def appear(request: ReceivedRequest) -> MetadataResponse:
            broker.topics["new"] = {0: 1}
            return broker.metadata(request)

        broker.on(ApiKey.METADATA, broker.metadata, broker.metadata, appear)
        assert (await client.topic("new")).partition_count == 1


async def test_the_first_bootstrap_server_may_be_down() -> None:
    down = f"127.0.0.1:{free_port()}"
    async with FakeBroker() as broker:
        async with Client([down, broker.bootstrap], **QUICK) as client:
            assert (await client.metadata()).cluster_id == "fake"


async def test_no_bootstrap_server_is_an_error_in_time() -> None:
    down = f"127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionClosed, match=down):
        await Client(down, connect_timeout_ms=50, **QUICK).connect()


async def test_a_broker_that_knows_only_old_api_versions_is_asked_in_their_form() -> None:
    refused = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=18, min_version=0, max_version=0)],
    )

    def old(request: ReceivedRequest) -> object:
        # A broker answers a version it does not know in the form of version 0.
        body = request.correlation_id.to_bytes(4, "big") + encode(refused, 0)
        return len(body).to_bytes(4, "big") + body

    async with FakeBroker() as broker:
        broker.served[ApiKey.METADATA] = (0, 5)
        broker.on(ApiKey.API_VERSIONS, old, broker._by_itself)
        async with Client(broker.bootstrap) as client:
            await client.topic("t")
        assert [a.version for a in broker.requests if a.api_key == ApiKey.API_VERSIONS] == [3, 0]
        assert {a.version for a in broker.requests if a.api_key == ApiKey.METADATA} == {5}


async def test_an_api_the_broker_lacks_is_named_with_both_ranges() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        del broker.served[ApiKey.DESCRIBE_CLUSTER]
        broker.cut_all()
        with pytest.raises(KafkaError, match="DESCRIBE_CLUSTER: we speak versions 0 to 2"):
            await client.retrying(lambda: client.request(DescribeClusterRequest()))


async def test_a_request_is_sent_at_the_highest_version_both_know() -> None:
    async with FakeBroker() as broker:
        broker.served[ApiKey.FIND_COORDINATOR] = (0, 3)
        async with Client(broker.bootstrap) as client:
            assert await client.coordinator("g") == 1
            assert broker.requests[-1].version == 3
            assert broker.requests[-1].message.key == "g"


async def test_a_coordinator_that_loads_is_asked_until_it_is_ready() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        loading = FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        broker.served[ApiKey.FIND_COORDINATOR] = (0, 3)
        broker.on(ApiKey.FIND_COORDINATOR, lambda _: loading, lambda _: loading, broker._by_itself)
        broker.cut_all()
        assert await client.coordinator("g") == 1
        assert broker.count(ApiKey.FIND_COORDINATOR) == 3


async def test_a_coordinator_whose_connection_breaks_is_looked_up_anew() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        broker.on(ApiKey.HEARTBEAT, lambda _: CUT, lambda _: HeartbeatResponse())
        await client.retrying(lambda: ask_coordinator(client, "g", HeartbeatRequest(group_id="g")))
        assert broker.count(ApiKey.FIND_COORDINATOR) == 2


async def test_requests_under_way_fail_when_the_client_closes() -> None:
    async with FakeBroker() as broker:
        broker.on(ApiKey.DESCRIBE_CLUSTER, lambda _: SILENCE)
        client = await Client(broker.bootstrap).connect()
        call = asyncio.create_task(client.request(DescribeClusterRequest()))
        await until(lambda: broker.count(ApiKey.DESCRIBE_CLUSTER))
        await client.close()
        with pytest.raises(ConnectionClosed):
            await call
        with pytest.raises(ConnectionClosed, match="closed"):
            await client.request(DescribeClusterRequest())
        await client.close()


async def test_a_request_timeout_is_retried_on_a_new_connection() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        broker.on(ApiKey.DESCRIBE_CLUSTER, lambda _: SILENCE, lambda _: DescribeClusterResponse())
        with pytest.raises(RequestTimedOut):
            await client.request(DescribeClusterRequest(), timeout_ms=30)
        connections = broker.connections
        await client.request(DescribeClusterRequest())
        assert broker.connections == connections + 1


async def test_a_throttled_answer_holds_back_the_next_request() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        broker.on(
            ApiKey.DESCRIBE_CLUSTER,
            lambda _: DescribeClusterResponse(throttle_time_ms=3_600_000),
        )
        await client.request(DescribeClusterRequest())
        request = asyncio.create_task(client.request(DescribeClusterRequest()))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert broker.count(ApiKey.DESCRIBE_CLUSTER) == 1
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)


def test_what_cannot_mend_is_not_retried() -> None:
    async def test() -> None:
        async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
            attempts = 0

            async def attempt() -> None:
                nonlocal attempts
                attempts += 1
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "secret")

            with pytest.raises(KafkaError, match="secret"):
                await client.retrying(attempt)
            assert attempts == 1

    run(test())


@pytest.mark.parametrize("servers", ["", "localhost", "host:", ":9092", "host:0", "host:99999", ["a:1", "b"]])
def test_bad_bootstrap_servers_are_refused(servers: str | list[str]) -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers"):
        parse_servers(servers)


def test_bootstrap_servers_in_every_form() -> None:
    assert parse_servers("a:1, [::1]:2") == [("a", 1), ("::1", 2)]
    assert parse_servers(["a:1"]) == [("a", 1)]


def test_partitions_of_a_cluster_come_in_order() -> None:
    assert ClusterMetadata().partitions() == []
