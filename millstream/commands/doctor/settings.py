"""What of a broker's settings the doctor looks at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kafka_client.java_properties import parse_overrides, read_properties
from logd.config.listeners import Endpoint, bound_endpoints
from logd.config.load import load_config

ZOOKEEPER = "zookeeper.connect"


class Wanted(NamedTuple):
    """Where a broker is to listen and to write, and the addresses of its ZooKeeper, if it has one."""

    listeners: Sequence[Endpoint]
    log_dirs: Sequence[Path]
    zookeeper: Sequence[str]


def read_settings(config: Path | None, overrides: Sequence[str]) -> Wanted:
    """By the file and what is on top of it, as logd reads them; ConfigError for what cannot be used."""
    loaded = load_config(config, overrides).config
    given = {} if config is None else read_properties(config, "--config")
    given.update(parse_overrides(overrides))
    servers, _, _ = given.get(ZOOKEEPER, "").partition("/")
    return Wanted(
        bound_endpoints(loaded),
        [Path(folder) for folder in loaded.log_dirs],
        [server.strip() for server in servers.split(",") if server.strip()],
    )
