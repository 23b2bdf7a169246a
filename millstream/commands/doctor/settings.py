"""The broker settings that the doctor checks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kafka_client.java_properties import parse_overrides, read_properties
from logd.config.listeners import Endpoint, bound_endpoints
from logd.config.load import load_config

ZOOKEEPER = "zookeeper.connect"


class CheckedSettings(NamedTuple):
    """The listeners, log directories and ZooKeeper addresses of a broker that is to run here."""

    listeners: Sequence[Endpoint]
    log_dirs: Sequence[Path]
    zookeeper: Sequence[str]


def read_settings(config: Path | None, overrides: Sequence[str]) -> CheckedSettings:
    """Read the file and the overrides as logd does. Raises ConfigError for settings that cannot be used."""
    loaded = load_config(config, overrides).config
    properties = {} if config is None else read_properties(config, "--config")
    properties.update(parse_overrides(overrides))
    servers, _, _ = properties.get(ZOOKEEPER, "").partition("/")
    return CheckedSettings(
        bound_endpoints(loaded),
        [Path(folder) for folder in loaded.log_dirs],
        [server.strip() for server in servers.split(",") if server.strip()],
    )
