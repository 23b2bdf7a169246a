"""The cluster and the client settings of a command.

The addresses come from the first of these that is set: `--bootstrap-server`; `bootstrap.servers` in the
`--command-config` file; the profile named by `--profile`, MILLSTREAM_PROFILE or `millstream profile use`; and
KAFKA_BOOTSTRAP_SERVERS. The default is localhost:9092, where logd listens by default. Keys of the
`--command-config` file override the profile's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_client.profiles import (
    DEFAULT_SERVERS,
    SERVERS,
    SERVERS_VARIABLE,
    default_profile,
    read_profile,
)

if TYPE_CHECKING:
    from kafka_client import Client

CONNECT_TIMEOUT_MS = 5_000
"""The connection timeout: short, since a user waits."""
MISSING_TOPIC_WAIT_MS = 1_000
"""How long to wait for a missing topic, since brokers learn of a new topic late."""


@dataclass(frozen=True, slots=True)
class Servers:
    """A cluster's addresses, and the properties of its clients."""

    bootstrap: str
    properties: Mapping[str, str]
    is_named: bool = True
    """True if the addresses are set; otherwise they are `DEFAULT_SERVERS`."""

    def client(self, **arguments: Any) -> Client:
        """Return an unconnected client. Raises ConfigError for an invalid property."""
        # Imported late, so that `--help` does not wait for the client.
        from kafka_client import Client
        from kafka_client.properties import ClientProperties

        properties = ClientProperties.layered(self.properties, "")
        usual = {"connect_timeout_ms": CONNECT_TIMEOUT_MS, "missing_topic_wait_ms": MISSING_TOPIC_WAIT_MS}
        return Client(self.bootstrap, **{**usual, **properties.client(), **arguments})


def find_servers(
    bootstrap_server: str | None, command_config: Path | None, profile: str | None, *effective: str
) -> Servers:
    """Return the cluster that the options and the environment name.

    `effective`: keys with an effect besides the client's. Raises ConfigError for a file that cannot be read,
    and for a missing profile.
    """
    from kafka_client.java_properties import read_properties
    from kafka_client.properties import CLIENT, ClientProperties

    file: dict[str, str] = (
        {} if command_config is None else read_properties(command_config, "--command-config")
    )
    ClientProperties.layered(file, "").tell_rest((*CLIENT, SERVERS, *effective))
    named = profile or default_profile()
    properties = {**(read_profile(named) if named else {}), **file}
    bootstrap = bootstrap_server or properties.get(SERVERS) or os.environ.get(SERVERS_VARIABLE) or None
    return Servers(bootstrap or DEFAULT_SERVERS, properties, is_named=bootstrap is not None)
