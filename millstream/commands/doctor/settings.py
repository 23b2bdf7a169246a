"""The broker settings that the doctor checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka_client.java_properties import parse_overrides, read_properties
from logd.config.listeners import Endpoint, advertised_endpoints, bound_endpoints, security_protocols
from logd.config.load import load_config

ZOOKEEPER = "zookeeper.connect"


class CheckedSettings(NamedTuple):
    """The settings of a broker that is to run here."""

    file: Path | None
    """The file that they were read from."""
    properties: Mapping[str, str]
    listeners: Sequence[Endpoint]
    advertised: Sequence[Endpoint]
    """The address of each listener that clients are told."""
    protocols: Mapping[str, str]
    """The security protocol of each listener."""
    log_dirs: Sequence[Path]
    zookeeper: Sequence[str]


def read_settings(config: Path | None, overrides: Sequence[str]) -> CheckedSettings:
    """Read the file and the overrides as logd does. Raises ConfigError for settings that cannot be used."""
    loaded = load_config(config, overrides).config
    properties = {} if config is None else read_properties(config, "--config")
    properties.update(parse_overrides(overrides))
    servers, _, _ = properties.get(ZOOKEEPER, "").partition("/")
    listeners = bound_endpoints(loaded)
    return CheckedSettings(
        file=config,
        properties=properties,
        listeners=listeners,
        advertised=advertised_endpoints(loaded, listeners),
        protocols=security_protocols(loaded),
        log_dirs=[Path(folder) for folder in loaded.log_dirs],
        zookeeper=[server.strip() for server in servers.split(",") if server.strip()],
    )
