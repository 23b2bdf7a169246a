"""A broker in the shape of testcontainers' `KafkaContainer`, so that switching is one import.

    from millstream.testing import KafkaContainer  # was: from testcontainers.kafka import KafkaContainer

    with KafkaContainer() as kafka:
        producer = Producer({"bootstrap.servers": kafka.get_bootstrap_server()})

There is no container: images, networks and commands inside it have no counterpart here.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from millstream.testing.broker import Broker
from millstream.testing.errors import BrokerError

PREFIX = "KAFKA_"
_OF_THE_IMAGE = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dirs",
        "node.id",
        "process.roles",
    }
)
"""Settings of the container, which are ignored here, as the broker decides them itself."""


class KafkaContainer:
    """A broker with the interface of testcontainers' `KafkaContainer`.

    `image`, `port` and the `with_` methods about how Kafka runs are accepted and ignored. The broker runs
    without ZooKeeper on a free port.
    """

    def __init__(self, image: str = "", port: int = 9093, **kwargs: object) -> None:
        self.image = image
        self.port = port
        self.env: dict[str, str] = {}
        self._broker: Broker | None = None

    def with_kraft(self) -> Self:
        """Do nothing: see the class."""
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Do nothing: a broker makes its own cluster id."""
        return self

    def with_env(self, key: str, value: str) -> Self:
        """Set a broker's setting by the variable of Kafka's images.

        KAFKA_AUTO_CREATE_TOPICS_ENABLE is auto.create.topics.enable. Other variables, and those of listeners
        and directories, are ignored.
        """
        self.env[key] = value
        return self

    def with_envs(self, **variables: str) -> Self:
        """Set several variables, as `with_env`."""
        self.env.update(variables)
        return self

    def start(self, timeout: float = 0) -> Self:
        """Start the broker and wait until it serves. Raises BrokerError if it does not start."""
        self._broker = Broker(_settings(self.env)).start()
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the broker and remove its data."""
        if self._broker is not None:
            broker, self._broker = self._broker, None
            broker.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def broker(self) -> Broker:
        """The broker, for what a container lacks: topics, records, assertions and faults."""
        if self._broker is None:
            raise BrokerError("the container does not run: call start() first")
        return self._broker

    def get_bootstrap_server(self) -> str:
        """Return the address for clients, ``host:port``."""
        return self.broker.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Return the host of `get_bootstrap_server`."""
        return self.get_bootstrap_server().rpartition(":")[0]

    def get_exposed_port(self, port: int) -> int:
        """Return the port of `get_bootstrap_server`, whatever `port` is."""
        return int(self.get_bootstrap_server().rpartition(":")[2])

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return stdout, which is empty, and the broker's output as stderr."""
        return b"", self.broker.log.encode()


def _settings(variables: dict[str, str]) -> dict[str, str]:
    keys = {
        name.removeprefix(PREFIX).lower().replace("_", "."): value
        for name, value in variables.items()
        if name.startswith(PREFIX)
    }
    return {key: value for key, value in keys.items() if key not in _OF_THE_IMAGE}
