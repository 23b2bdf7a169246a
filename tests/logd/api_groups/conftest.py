"""Fixtures: a raw client of the shared broker, a topic, and a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.list_groups import ListGroupsRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for


@pytest.fixture
def client(logd: LogdProcess) -> Iterator[RawClient]:
    with RawClient(logd.port) as raw:
        coordinator = raw.request(FindCoordinatorRequest(coordinator_keys=["any"]), 6).coordinators[0]
        assert coordinator.error_code == 0
        wait_for(lambda: raw.request(ListGroupsRequest(), 4).error_code == 0)  # all partitions are loaded
        yield raw


@pytest.fixture
def topic(client: RawClient, new_name: Callable[..., str]) -> str:
    """Create a topic of three partitions and return its name."""
    name = new_name()
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=3, replication_factor=1)])
    assert client.request(request, 7).topics[0].error_code == 0
    return name


@pytest.fixture
def topic_id(client: RawClient, topic: str) -> bytes:
    result: bytes = (
        client.request(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12).topics[0].topic_id
    )
    return result


@pytest.fixture
def group(new_name: Callable[..., str]) -> str:
    return new_name("group")
