"""A test's cluster: several brokers, each a process, coordinated by ZooKeeper."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from kafka_client.errors import KafkaError, MillstreamError
from kafka_client.topic_partition import TopicPartition
from millstream.testing.cluster_broker import ClusterBroker
from millstream.testing.errors import BrokerError
from millstream.testing.kafka import LOOK_AGAIN_S, Kafka
from millstream.testing.settings import REPLICAS_MAX, cluster_settings
from millstream.testing.view import View
from millstream.testing.zookeeper import ZooKeeper

WAIT_S = 30.0
"""The default wait: a failover takes a ZooKeeper session timeout (2 s), and longer on a busy machine."""

TIMES_ANEW = "times-anew"
"""The file, in a permanent folder, with the number of resets; it selects the cluster's path in ZooKeeper."""


class Cluster(Kafka):
    """A cluster of brokers 1 to `nodes`, used as a context manager or by `start` and `stop`.

    `config`: Kafka's keys for all brokers, on top of `settings.cluster_settings`. `zookeeper`: as for
    `zookeeper.connect`, with an optional path. Without it the cluster starts its own ZooKeeper, which takes
    Java and PySpark's jars. `folder`: the directory of data and output; without it temporary ones, removed at
    the end.

    Raises BrokerError if the cluster does not start or cannot carry out a call.
    """

    def __init__(
        self,
        nodes: int = 3,
        config: Mapping[str, object] | None = None,
        *,
        zookeeper: str | None = None,
        folder: Path | str | None = None,
    ) -> None:
        if nodes < 1:
            raise ValueError(f"a cluster has one broker or more, not {nodes}")
        self._home = None if folder is None else Path(folder).resolve()
        self._zookeeper = zookeeper
        self._own_zookeeper: ZooKeeper | None = None
        self._reset_count = _reset_count(self._home)
        super().__init__()
        self._config = cluster_settings(config or {}, nodes)
        self.brokers: Mapping[int, ClusterBroker] = {id: self._new_broker(id) for id in range(1, nodes + 1)}

    def _new_broker(self, id: int) -> ClusterBroker:
        home = self._home
        folder = Path(tempfile.mkdtemp(prefix="millstream-")).resolve() if home is None else home / str(id)
        return ClusterBroker(id, folder, self._config, keeps=home is not None)

    # Life

    def start(self) -> Self:
        """Start the brokers that do not run. Wait until each serves and knows the others."""
        waiting = [broker for broker in self.brokers.values() if not broker.is_running]
        try:
            self._start_zookeeper()
            for broker in waiting:
                broker.spawn(self._path())
            for broker in waiting:
                broker.host.wait()
            self._until(self._know_of_each_other, WAIT_S, _alive)
        except BaseException:
            self.stop()
            raise
        return self

    def _start_zookeeper(self) -> None:
        if self._zookeeper is None and self._own_zookeeper is None:
            place = None if self._home is None else self._home / "zookeeper"
            self._own_zookeeper = ZooKeeper(place).start()

    def _know_of_each_other(self, views: Mapping[int, View]) -> bool:
        return all(view.alive == self.brokers.keys() for view in views.values())

    def _path(self) -> str:
        """Return the connect string with the path of the cluster in ZooKeeper."""
        connect = self._zookeeper or (self._own_zookeeper.connect_string if self._own_zookeeper else "")
        return f"{connect}/anew-{self._reset_count}" if self._reset_count else connect

    def stop(self) -> None:
        """Stop all brokers and remove temporary folders."""
        self._close_client()
        for broker in self.brokers.values():
            broker.host.stop()
        if self._own_zookeeper is not None:
            zookeeper, self._own_zookeeper = self._own_zookeeper, None
            zookeeper.stop()

    def clean(self) -> None:
        """Reset the cluster: no topics, groups, transactional ids or faults.

        Clients stay connected, unless a broker was killed or paused, a disk had a fault, or brokers' settings
        were changed. In these cases the cluster starts again at the same addresses.
        """
        with suppress(MillstreamError, AssertionError):  # after any error a new cluster starts
            if self._is_unharmed():
                self._delete_all_topics()
                return
        self._begin_again()

    def _is_unharmed(self) -> bool:
        if any(broker.was_harmed or not broker.is_up for broker in self.brokers.values()):
            return False
        views = self._views()
        return len(views) == len(self.brokers) and not any(view.is_harmed for view in views.values())

    def _delete_all_topics(self) -> None:
        from millstream.testing import client

        names = {name for view in self._views().values() for name in view.topics}
        self._ask_client().run(lambda connection: client.delete_topics(connection, names))
        self._until(lambda views: not any(names & view.topics for view in views.values()), WAIT_S, _topics)
        for broker in self.brokers.values():
            broker.host.ask("forget")

    def _begin_again(self) -> None:
        """Start again at another path of ZooKeeper, where no sessions of the old brokers have to expire."""
        for broker in self.brokers.values():
            broker.host.kill()
            broker.was_harmed = False
            shutil.rmtree(broker.folder / "data", ignore_errors=True)
        self._reset_count += 1
        if self._home is not None:
            (self._home / TIMES_ANEW).write_text(str(self._reset_count))
        self.start()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers: ``host:port,host:port``."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    @property
    def _reachable(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self._up())

    def _up(self) -> list[ClusterBroker]:
        up = [broker for broker in self.brokers.values() if broker.is_up]
        if not up:
            raise BrokerError("no broker of the cluster is up: call start(), or resume() where one is paused")
        return up

    # Topics

    def topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, object] | None = None,
        *,
        replication_factor: int | None = None,
    ) -> str:
        """Create a topic with Kafka's topic keys and wait until all replicas are in sync. Return its name.

        Without `replication_factor` the replicas are on three brokers, or on all of fewer.
        """
        from millstream.testing import client

        factor = min(REPLICAS_MAX, len(self.brokers)) if replication_factor is None else replication_factor
        configs = {key: str(value) for key, value in (config or {}).items()}
        try:
            self._ask_client().run(
                lambda connection: client.create_topic(connection, name, partitions, factor, configs)
            )
        except KafkaError as error:
            raise BrokerError(str(error)) from error
        self.wait_in_sync(name)
        return name

    def wait_in_sync(self, topic: str, *, seconds: float = WAIT_S) -> None:
        """Wait until all replicas of the topic are in sync, and all brokers that are up know it.

        Raises AssertionError with the partitions' states after `seconds`.
        """
        self._until(
            lambda views: all(view.is_in_sync(topic) for view in views.values()),
            seconds,
            lambda view: "; ".join(f"{tp}: {state}" for tp, state in view.of_topic(topic)) or f"no {topic!r}",
        )

    # Roles

    def leader(self, topic: str, partition: int = 0, *, seconds: float = WAIT_S) -> ClusterBroker:
        """Return the leader of a partition once it is up. Raises AssertionError after `seconds`."""
        tp = TopicPartition(topic, partition)
        return self._agreed(lambda view: view.leader(tp), f"the leader of {tp}", seconds)

    def controller(self, *, seconds: float = WAIT_S) -> ClusterBroker:
        """Return the controller once it is up. Raises AssertionError after `seconds`."""
        return self._agreed(lambda view: view.controller, "the controller", seconds)

    def coordinator(
        self, group: str = "", *, transactional_id: str = "", seconds: float = WAIT_S
    ) -> ClusterBroker:
        """Return the coordinator of a group or transactional id once it is up.

        Raises AssertionError after `seconds`.
        """
        from millstream.testing import client

        kind, key = (client.TRANSACTION, transactional_id) if transactional_id else (client.GROUP, group)
        deadline = time.monotonic() + seconds
        while True:
            id = self._ask_client().run(lambda connection: connection.coordinator(key, kind))
            if (broker := self.brokers[id]).is_up:
                return broker
            if time.monotonic() > deadline:
                raise AssertionError(f"after {seconds:g} s the coordinator of {key!r} is {broker}")
            time.sleep(LOOK_AGAIN_S)

    def kill_leader(self, topic: str, partition: int = 0) -> ClusterBroker:
        """Kill the leader of a partition and return it. `leader` waits for the next one."""
        broker = self.leader(topic, partition)
        broker.kill()
        return broker

    def _agreed(self, named: Callable[[View], int], what: str, seconds: float) -> ClusterBroker:
        """Return the broker that all views name, once it is up."""
        named_last: list[int] = []

        def one_is(views: Mapping[int, View]) -> bool:
            named_last[:] = {named(view) for view in views.values()}
            return len(named_last) == 1 and named_last[0] in views

        self._until(one_is, seconds, lambda view: f"{what} is {named(view)}")
        return self.brokers[named_last[0]]

    # What is known

    def report(self) -> str:
        """Return the partitions, the last requests and each broker's last lines, for a failed test."""
        from millstream.testing.cluster_report import report

        return report(list(self.brokers.values()))

    def _views(self) -> dict[int, View]:
        """Return the views of all brokers that are up, by their ids."""
        views = ((broker.id, broker.view()) for broker in self._up())
        return {id: view for id, view in views if view is not None}

    def _until(
        self, holds: Callable[[Mapping[int, View]], bool], seconds: float, describe: Callable[[View], str]
    ) -> None:
        """Wait until `holds` is true of `_views`.

        Raises AssertionError with each broker's description after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not (views := self._views()) or not holds(views):
            if time.monotonic() > deadline:
                descriptions = "\n".join(f"broker {id}: {describe(view)}" for id, view in views.items())
                raise AssertionError(f"after {seconds:g} s\n{descriptions}")
            time.sleep(LOOK_AGAIN_S)


def _reset_count(home: Path | None) -> int:
    """Return how often the cluster in a folder was started again."""
    try:
        return 0 if home is None else int((home / TIMES_ANEW).read_text())
    except FileNotFoundError:
        return 0


def _alive(view: View) -> str:
    return f"alive are {', '.join(map(str, sorted(view.alive))) or 'none'}"


def _topics(view: View) -> str:
    return f"there are topics: {', '.join(sorted(view.topics))}"
