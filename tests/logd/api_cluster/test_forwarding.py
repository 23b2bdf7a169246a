"""Requests that only the controller can carry out (KIP-590): forwarded by broker 1, or served by it as
controller.

`Recording` is the test's connection to the controller. Kafka's counterparts are ForwardingManager,
EnvelopeUtils and KafkaApis.handleEnvelope.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire import (
    Message,
    decode,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
    response_class,
)
from kafka_client.wire.messages.api_versions import ApiVersionsRequest
from kafka_client.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from logd.api.request.answer import Refused
from logd.api.table import APIS, BROKER_APIS, Api
from logd.broker.cluster.controller_link import client_host_of, in_envelope, principal_of
from logd.metadata.controller.decision import Decision
from tests.logd.api_cluster.conftest import INTERNAL, Cluster
from tests.support.depth import deep
from tests.support.sample_requests import sample_frame

FORWARDED = [pytest.param(api, id=api.module) for api in APIS.values() if api.by_controller]


class Recording:
    """A connection to the controller that records envelopes; `answer` makes their responses."""

    def __init__(self, answer: Callable[[EnvelopeRequest], EnvelopeResponse] | None = None) -> None:
        self.is_active = answer is None
        self.envelopes: list[EnvelopeRequest] = []
        self._answer = answer

    async def forward(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        self.envelopes.append(envelope)
        assert self._answer is not None, "a controller asks nobody"
        return self._answer(envelope)


def elsewhere(cluster: Cluster, answer: Callable[[EnvelopeRequest], EnvelopeResponse]) -> Recording:
    """Make another broker the controller, which answers envelopes with `answer`; return the connection to
    it.
    """
    link = Recording(answer)
    cluster.broker.controller_link = link
    return link


def here(cluster: Cluster) -> None:
    """Make broker 1 the controller."""
    cluster.broker.controller_link = Recording()


def creating(name: str = "new", version: int = 7) -> bytes:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=2)
    return encode_request(CreateTopicsRequest(topics=[topic]), version, 7, "client")[4:]


def versions(api: Api) -> range:
    return range(api.first, api.last + 1)


@pytest.mark.parametrize("api", FORWARDED)
def test_a_request_goes_as_it_came_and_so_does_its_answer(cluster: Cluster, api: Api) -> None:
    link = elsewhere(cluster, lambda envelope: EnvelopeResponse(response_data=b"\0\0\0\7 whatever"))
    for version in versions(api):
        request = sample_frame(api.key, version)[4:]
        assert cluster.ask_raw(request) == b"\0\0\0\x0d\0\0\0\7 whatever"
        envelope = link.envelopes.pop()
        assert envelope.request_data == request
        assert principal_of(envelope) == "User:ANONYMOUS"
        assert client_host_of(envelope) == "127.0.0.1"
    assert link.envelopes == []


@pytest.mark.parametrize("api", FORWARDED)
def test_where_it_cannot_be_asked_everything_is_refused(cluster: Cluster, api: Api) -> None:
    def too_late(envelope: EnvelopeRequest) -> EnvelopeResponse:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    elsewhere(cluster, too_late)
    for version in versions(api):
        answer = cluster.ask_raw(sample_frame(api.key, version)[4:])
        _, body = decode_response_header(api.key, version, answer, 4)
        assert codes(decode(response_class(api.key), version, answer, body)) == {ErrorCode.REQUEST_TIMED_OUT}


def codes(answer: Any) -> set[int]:
    """Return all error codes in `answer`, at any depth, except NONE."""
    if isinstance(answer, list):
        return set().union(*(codes(one) for one in answer))
    if not isinstance(answer, Message):
        return set()
    own = {answer.error_code} - {0} if hasattr(answer, "error_code") else set()
    return own.union(*(codes(getattr(answer, field)) for field in answer.__struct_fields__))


def test_levels_of_loggers_belong_to_the_broker_that_is_asked(cluster: Cluster) -> None:
    link = elsewhere(cluster, lambda envelope: EnvelopeResponse(response_data=b""))
    resource = AlterConfigsResource(resource_type=8, resource_name="no such broker")
    answer = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_message.startswith("Unexpected broker id, expected ")
    assert link.envelopes == []


def test_errors_of_the_envelope_are_not_the_clients(cluster: Cluster) -> None:
    elsewhere(cluster, lambda envelope: EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    answer = cluster.ask(DeleteTopicsRequest(topic_names=["a", "b"]), 5)
    assert [row.error_code for row in answer.responses] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2


def test_a_controller_of_another_release_closes_the_connection(cluster: Cluster) -> None:
    elsewhere(cluster, lambda envelope: EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    with pytest.raises(Refused):
        cluster.ask_raw(creating())


def test_what_is_malformed_goes_nowhere(cluster: Cluster) -> None:
    link = elsewhere(cluster, lambda envelope: EnvelopeResponse())
    with pytest.raises(Refused):
        cluster.ask_raw(creating()[:-3])
    assert link.envelopes == []


def test_everything_else_is_served_here(cluster: Cluster) -> None:
    link = elsewhere(cluster, lambda envelope: EnvelopeResponse())
    assert len(cluster.ask(MetadataRequest(topics=None), 12).topics) == 1
    assert link.envelopes == []


def test_the_envelope_is_not_for_clients(node: Cluster) -> None:
    envelope = encode_request(in_envelope(creating(), "User:a", "::1"), 0, 7, "client")[4:]
    with pytest.raises(Refused, match="Envelope, which only a broker"):
        node.ask_raw(envelope)
    node.join()
    here(node)
    offered = {api.api_key for api in node.ask(ApiVersionsRequest(), 0).api_keys}
    assert offered == set(APIS)
    assert not offered & set(BROKER_APIS)


def wrapped(cluster: Cluster, request: bytes, **changed: Any) -> Any:
    """Serve a request that another broker forwarded; return the envelope's response."""
    envelope = in_envelope(request, "User:alice", "10.1.2.3")
    for field, value in changed.items():
        setattr(envelope, field, value)
    return cluster.ask(envelope, 0, INTERNAL)


def test_the_controller_serves_what_was_sent_on(cluster: Cluster) -> None:
    here(cluster)
    answer = wrapped(cluster, creating())
    assert answer.error_code == 0
    correlation_id, body = decode_response_header(19, 7, answer.response_data)
    (result,) = decode(CreateTopicsResponse, 7, answer.response_data, body).topics
    assert (correlation_id, result.name, result.error_code) == (7, "new", 0)
    assert cluster.broker.image.topics["new"].topic_id == result.topic_id


@pytest.mark.parametrize("api", FORWARDED)
def test_it_answers_as_if_asked_directly(cluster: Cluster, api: Api) -> None:
    here(cluster)
    for version in versions(api):
        request = sample_frame(api.key, version)[4:]
        directly = cluster.ask_raw(request)[4:]
        assert wrapped(cluster, request) == EnvelopeResponse(response_data=directly)


def test_who_is_not_the_controller_says_so(cluster: Cluster) -> None:
    elsewhere(cluster, lambda envelope: EnvelopeResponse())
    assert wrapped(cluster, creating()) == EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)


def test_who_resigns_meanwhile_says_so_too(cluster: Cluster) -> None:
    class Resigned:
        async def do(self, decide: Any, *, validate_only: bool = False) -> Decision[Any]:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)

    here(cluster)
    cluster.broker.catalog.controller = Resigned()
    assert wrapped(cluster, creating()) == EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"request_data": b"\0\x13"}, ErrorCode.INVALID_REQUEST),
        ({"request_data": creating()[:-3]}, ErrorCode.INVALID_REQUEST),
        ({"request_data": encode_request(MetadataRequest(), 9, 7, "c")[4:]}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\0\x13\0\x63" + creating()[4:]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0\0\x99"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0\1\0"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"client_host_address": b"\1"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_envelopes_that_cannot_be_opened(cluster: Cluster, changed: Any, code: ErrorCode) -> None:
    here(cluster)
    assert wrapped(cluster, creating(), **changed) == EnvelopeResponse(error_code=code)
    assert "new" not in cluster.broker.image.topics


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "fe80::1%eth0"])
def test_addresses_of_clients(host: str) -> None:
    assert client_host_of(in_envelope(b"", "User:a:b", host)) == host.partition("%")[0]
    assert principal_of(in_envelope(b"", "User:a:b", host)) == "User:a:b"


def created(code: int) -> Callable[[EnvelopeRequest], EnvelopeResponse]:
    answer = CreateTopicsResponse(topics=[CreatableTopicResult(name="new", error_code=code)])
    return lambda envelope: EnvelopeResponse(response_data=encode_response(answer, 7, 0)[4:])


def asked_to_create(envelope: EnvelopeRequest) -> tuple[str, int, int, set[str]]:
    data = envelope.request_data
    header = decode_request_header(data)
    (topic,) = decode(CreateTopicsRequest, header.version, data, header.body).topics
    return topic.name, topic.num_partitions, topic.replication_factor, {row.name for row in topic.configs}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0, ErrorCode.LEADER_NOT_AVAILABLE),
        (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.LEADER_NOT_AVAILABLE),
        (ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_the_controller_creates_what_metadata_asks_for(cluster: Cluster, code: int, expected: int) -> None:
    link = elsewhere(cluster, created(code))
    answer = cluster.ask(MetadataRequest(topics=[MetadataRequestTopic(name="new")]), 12)
    assert answer.topics[0].error_code == expected
    assert [asked_to_create(envelope) for envelope in link.envelopes] == [("new", 1, 1, set())]


@pytest.mark.parametrize(("key_type", "name"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
def test_and_the_coordinators_topics(cluster: Cluster, key_type: int, name: str) -> None:
    link = elsewhere(cluster, created(0))
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["who"])
    (coordinator,) = cluster.ask(request, 4).coordinators
    assert coordinator.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (envelope,) = link.envelopes
    topic, partitions, factor, configs = asked_to_create(envelope)
    assert (topic, partitions, factor) == (name, 50, 1)
    assert {"cleanup.policy", "segment.bytes"} <= configs


def test_a_topic_is_asked_for_once_at_a_time(cluster: Cluster) -> None:
    async def ask() -> list[KafkaError]:
        asking = [asyncio.ensure_future(cluster.broker.auto_create("new")) for _ in range(3)]
        await asyncio.sleep(0)
        asking[0].cancel()
        refusals = await asyncio.gather(*asking[1:], return_exceptions=True)
        assert asking[0].cancelled()
        return [refusal for refusal in refusals if isinstance(refusal, KafkaError)]

    link = elsewhere(cluster, created(0))
    assert [refusal.code for refusal in cluster.run(ask())] == [ErrorCode.LEADER_NOT_AVAILABLE] * 2
    assert len(link.envelopes) == 1
    cluster.run(ask())
    assert len(link.envelopes) == 2


@deep
@pytest.mark.parametrize("api", FORWARDED)
def test_what_brokers_mangle_is_answered(cluster: Cluster, api: Api) -> None:
    """Broken envelopes get an error response and do not end the broker's handler."""
    here(cluster)
    rng = random.Random(api.key)
    for version in versions(api):
        whole = sample_frame(api.key, version)[4:]
        for _ in range(40):
            mangled = bytearray(whole)
            for _ in range(rng.randrange(1, 4)):
                mangled[rng.randrange(len(mangled))] = rng.randrange(256)
            answer = wrapped(cluster, bytes(mangled[: rng.randrange(len(mangled) + 1)]))
            assert (answer.error_code == 0) is (answer.response_data is not None)
