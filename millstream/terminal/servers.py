"""Which cluster a command talks to, and with which settings.

The first of these that says so: `--bootstrap-server`; `bootstrap.servers` in the `--command-config` file; the
profile named by `--profile`, MILLSTREAM_PROFILE or `millstream profile use`; KAFKA_BOOTSTRAP_SERVERS; and
localhost:9092, where logd listens if nothing else is said. A key in the file of `--command-config` is
over the profile's.
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
"""Short, because a person waits for the answer."""
MISSING_TOPIC_WAIT_MS = 1_000
"""How long a topic just made may be unknown to a broker; that long it takes to say that there is none."""


@dataclass(frozen=True, slots=True)
class Servers:
    """A cluster's addresses, and the properties of the clients that talk to it."""

    bootstrap: str
    properties: Mapping[str, str]
    is_named: bool = True
    """Whether somebody has said which; else it is `DEFAULT_SERVERS`."""

    def client(self, **arguments: Any) -> Client:
        """A client, not connected yet; ConfigError for a property that cannot be used."""
        # Imported once a command runs: `--help` does not wait for the client.
        from kafka_client import Client
        from kafka_client.properties import ClientProperties

        given = ClientProperties.layered(self.properties, "")
        usual = {"connect_timeout_ms": CONNECT_TIMEOUT_MS, "missing_topic_wait_ms": MISSING_TOPIC_WAIT_MS}
        return Client(self.bootstrap, **{**usual, **given.client(), **arguments})


def find_servers(
    bootstrap_server: str | None, command_config: Path | None, profile: str | None, *effective: str
) -> Servers:
    """What the options and the environment say. `effective`: keys that have an effect beside the client's.

    ConfigError for a file that cannot be read, and for a profile that is not there.
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
