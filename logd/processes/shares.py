"""The settings of each broker of several on one host, on top of the settings of all.

node.id             node.id, and the next numbers
listeners           each listener's port, and the next ports; 0 is any free port. advertised.listeners and
                    millstream.http.listener likewise
log.dirs            a subdirectory of each directory, named by the node id: DIR/1, DIR/2
broker.rack         one for all, by default the host's name. Replicas of a partition are placed in as many
                    racks as possible, so they only share a host if there are too few hosts
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kafka_client.errors import ConfigError
from kafka_client.http.address import next_port
from logd.config.broker import BrokerConfig
from logd.config.listeners import shifted
from logd.storage.names import META_PROPERTIES


class Share(NamedTuple):
    """The settings of one of the host's broker processes; `overrides` are `key=value`."""

    node_id: int
    overrides: tuple[str, ...]


def shares(config: BrokerConfig, count: int) -> list[Share]:
    """Return the settings of each of ``count`` brokers; raises ConfigError if the settings cannot be
    split.
    """
    if not config.is_clustered:
        raise ConfigError("--processes", count, "several brokers are a cluster: give zookeeper.connect")
    _check_directories(config)
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
    if config.millstream_http_listener:
        yield "millstream.http.listener", next_port(config.millstream_http_listener, number)


def _check_directories(config: BrokerConfig) -> None:
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
