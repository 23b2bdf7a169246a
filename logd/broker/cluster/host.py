"""`HostBroker`: what membership of a cluster needs of the broker that joins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from logd.broker.background.housekeeping import Housekeeping
    from logd.broker.background.truncation import Truncations
    from logd.broker.cluster.broker_login import BrokerLogin
    from logd.broker.cluster.controller_link import ControllerLink
    from logd.broker.cluster.replica_selector import ReplicaSelector
    from logd.broker.cluster.replication.led_partitions import LedPartitions
    from logd.broker.groups.groups import Groups
    from logd.broker.log_dirs.log_dirs import LogDirs
    from logd.broker.topics.catalog import TopicCatalog
    from logd.broker.topics.cluster_view import ClusterView
    from logd.broker.transactions.transactions import Transactions
    from logd.config.broker import BrokerConfig
    from logd.config.listeners import Endpoint
    from logd.metadata.image import ClusterImage


class HostBroker(Protocol):
    """A broker with its log directories open. `ClusterMembership.create_parts` sets the last four."""

    node_id: int
    config: BrokerConfig
    image: ClusterImage
    endpoints: list[Endpoint]
    loop: asyncio.AbstractEventLoop
    catalog: TopicCatalog
    cluster: ClusterView
    groups: Groups
    transactions: Transactions
    log_dirs: LogDirs
    housekeeping: Housekeeping
    truncations: Truncations
    now_ms: Callable[[], int]
    broker_login: BrokerLogin | None
    controller_link: ControllerLink | None
    leading: LedPartitions | None
    replica_selector: ReplicaSelector | None

    def controller_changed(self, broker_id: int) -> None:
        """Take note that another broker is the controller; -1: nobody is known to be."""
