"""Topics made over a raw connection, for tests whose matter is something else."""

from __future__ import annotations

from collections.abc import Mapping

from logd.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient


def create_topic(
    logd: LogdProcess | ApacheKafka,
    name: str,
    configs: Mapping[str, str] | None = None,
    *,
    partitions: int = 1,
) -> str:
    """Create a topic; its name. AssertionError with the broker's reason when it does not want to."""
    settings = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    with RawClient(logd.port) as client:
        (created,) = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics
    assert created.error_code == 0, created.error_message
    return name
