"""Topics made over a raw connection, for tests whose matter is something else."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.requests import topic_creation


def create_topic(
    logd: LogdProcess | ApacheKafka,
    name: str,
    configs: Mapping[str, str] | None = None,
    *,
    partitions: int = 1,
) -> str:
    """Create a topic; its name. AssertionError with the broker's reason when it does not want to."""
    with RawClient(logd.port) as client:
        _create(client, name, partitions, configs or {})
    return name


def make(client: RawClient, name: str = "t", *, partitions: int = 1, **configs: str) -> None:
    """Create a topic; keys of its settings have `_` for `.`."""
    _create(client, name, partitions, {key.replace("_", "."): value for key, value in configs.items()})


def _create(client: RawClient, name: str, partitions: int, configs: Mapping[str, str]) -> None:
    (created,) = client.request(topic_creation(name, partitions, configs), 7).topics
    assert created.error_code == 0, created.error_message
