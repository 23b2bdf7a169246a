"""A Kafka for tests: a broker in a process or a thread of its own, clusters, faults, assertions, fixtures.

    from millstream.testing import Broker

    with Broker() as broker:
        ...  # any Kafka client, at broker.bootstrap_servers

pytest finds the fixtures by itself (`plugin`). Nothing is imported here until it is asked for: pytest imports
this package in every run, of other projects too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.testing.broker import Broker
    from millstream.testing.cluster import Cluster
    from millstream.testing.container import KafkaContainer
    from millstream.testing.errors import BrokerError
    from millstream.testing.records import ReadRecord
    from millstream.testing.request import Request

__all__ = ["Broker", "BrokerError", "Cluster", "KafkaContainer", "ReadRecord", "Request"]

_HOMES = {
    "Broker": "broker",
    "BrokerError": "errors",
    "Cluster": "cluster",
    "KafkaContainer": "container",
    "ReadRecord": "records",
    "Request": "request",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(f"millstream.testing.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
