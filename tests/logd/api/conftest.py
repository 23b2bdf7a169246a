"""Fixtures: a raw client of the shared broker, and topics that the client creates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka_client.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient


@pytest.fixture
def client(logd: LogdProcess) -> Iterator[RawClient]:
    with RawClient(logd.port) as raw:
        yield raw


@pytest.fixture
def make_topic(client: RawClient, new_name: Callable[..., str]) -> Callable[..., str]:
    """Return a function that creates a topic of one partition, with Kafka's config keys, and returns its
    name.
    """

    def make(configs: dict[str, str] | None = None, partitions: int = 1) -> str:
        name = new_name()
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        result = client.request(CreateTopicsRequest(topics=[topic]), 7).topics[0]
        assert result.error_code == 0, result.error_message
        return name

    return make
