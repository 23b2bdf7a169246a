"""What each of several brokers on one host is given on top of the settings of all.

node.id             node.id, and the numbers behind it
listeners           each listener's port, and those behind it; 0 is any free one (advertised.listeners alike)
log.dirs            of each folder a subfolder, which is called by the node id: DIR/1, DIR/2
broker.rack         one for all, the host's name unless it is set: replicas of a partition are placed in as
                    many racks as there are, so that they share a host only where there are too few
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kafka_client.errors import ConfigError
from logd.config.broker import BrokerConfig
from logd.config.listeners import shifted
from logd.storage.names import META_PROPERTIES


class Share(NamedTuple):
    """One of the brokers, and its `key=value`."""

    node_id: int
    overrides: tuple[str, ...]


def shares(config: BrokerConfig, count: int) -> list[Share]:
    """Of each of ``count`` brokers. ConfigError for settings that cannot be shared out."""
    if not config.is_clustered:
        raise ConfigError("--processes", count, "several brokers are a cluster: give zookeeper.connect")
    _check_folders(config)
    _check_ports(config, count)
    rack = config.broker_rack or socket.gethostname()
    return [
        Share(
            config.node_id + number,
            (f"broker.rack={rack}", *(f"{key}={value}" for key, value in _own(config, number))),
        )
        for number in range(count)
    ]


def _own(config: BrokerConfig, number: int) -> Iterator[tuple[str, str]]:
    node_id = config.node_id + number
    yield "node.id", str(node_id)
    yield "log.dirs", ",".join(str(Path(path) / str(node_id)) for path in config.log_dirs)
    yield "listeners", shifted("listeners", config.listeners, number)
    if config.advertised_listeners:
        yield "advertised.listeners", shifted("advertised.listeners", config.advertised_listeners, number)


def _check_folders(config: BrokerConfig) -> None:
    for path in map(Path, config.log_dirs):
        if (path / META_PROPERTIES).exists():
            raise ConfigError(
                "log.dirs",
                path,
                "it holds a broker's logs, and each of --processes has a subfolder: move what is in it to "
                f"{path / str(config.node_id)}, and broker {config.node_id} goes on with it",
            )


def _check_ports(config: BrokerConfig, count: int) -> None:
    ports = sorted(int(text.rpartition(":")[2]) for text in config.listeners)
    if any(port and following - port < count for port, following in pairwise(ports)):
        raise ConfigError(
            "listeners",
            ",".join(config.listeners),
            f"ports that are {count} apart, since each of --processes has the next one",
        )
