"""Several brokers of Apache Kafka that are one cluster, each a controller as well.

with KafkaNodes(tmp_path) as kafka:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.apache_kafka import ApacheKafka
from tests.support.ports import free_port


class KafkaNodes:
    """`brokers` by their ids, 1 to `count`; `overrides` are for all of them. As a context manager they are
    started, and killed in the end.
    """

    def __init__(
        self, folder: Path, overrides: Mapping[str, object] | None = None, *, count: int = 3
    ) -> None:
        controllers = {id_: f"127.0.0.1:{free_port()}" for id_ in range(1, count + 1)}
        voters = ",".join(f"{id_}@{address}" for id_, address in controllers.items())
        self._stack = ExitStack()
        self.brokers: dict[int, ApacheKafka] = {}
        for id_, controller in controllers.items():
            broker = self.brokers[id_] = ApacheKafka(folder / str(id_), overrides)
            broker.settings |= {
                "node.id": id_,
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},CONTROLLER://{controller}",
            }

    @property
    def bootstrap(self) -> str:
        """All brokers, for clients."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def __enter__(self) -> Self:
        """Start all brokers at once: none serves before a majority is there to elect a controller."""
        with ExitStack() as stack:
            for broker in self.brokers.values():
                stack.push(broker.__exit__)
                broker.spawn()
            for broker in self.brokers.values():
                broker.wait_until_ready()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)
