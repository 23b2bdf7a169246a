"""One of a test cluster's brokers: where it is, and what can befall it alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream.testing.faults import NodeFaults
from millstream.testing.process import ProcessHost
from millstream.testing.request import Request
from millstream.testing.view import View


class ClusterBroker:
    """Always a process. `Cluster` makes and starts it; `host` is for the cluster alone.

    `faults`: what can be done to its clients and its disk. Methods raise BrokerError.
    """

    def __init__(self, id: int, folder: Path, config: Mapping[str, object], *, keeps: bool) -> None:
        self.id = id
        self._config = {**config, "node.id": id}
        self.host = ProcessHost(folder, self._config, keeps=keeps, name=f"broker {id}")
        self.faults = NodeFaults(self.host)
        self.was_harmed = False
        """Whether it was killed or paused since the cluster began."""

    @property
    def bootstrap_servers(self) -> str:
        """``host:port``, for clients that are to begin with this one."""
        return f"127.0.0.1:{self.host.port}"

    @property
    def folder(self) -> Path:
        """Where its data and its output are."""
        return self.host.folder

    @property
    def log(self) -> str:
        """What it has said."""
        return self.host.log

    @property
    def is_running(self) -> bool:
        """Whether its process lives, paused or not."""
        return self.host.is_running

    @property
    def is_paused(self) -> bool:
        """Whether it stands still."""
        return self.host.is_paused

    @property
    def is_up(self) -> bool:
        """Whether it runs and does not stand still."""
        return self.is_running and not self.is_paused

    def spawn(self, zookeeper: str) -> None:
        """Begin a start; `host.wait` comes next. `zookeeper`: for `zookeeper.connect`."""
        self.host.config = {**self._config, "zookeeper.connect": zookeeper}
        self.host.spawn()

    def kill(self) -> None:
        """SIGKILL. When its session with ZooKeeper is over others lead; `start` brings it back."""
        self.was_harmed = True
        self.host.kill()

    def start(self) -> None:
        """After `kill`: start again, at the same address with the same data, and wait until it serves."""
        self.host.start()

    def restart(self) -> None:
        """Hand over what it leads, stop and start again, at the same address with the same data."""
        self.host.resume()
        if self.is_running:
            self.host.ask("restart")
        else:
            self.host.start()

    def pause(self) -> None:
        """Have it stand still: connections stay, nothing is answered, until `resume`. When its session with
        ZooKeeper is over meanwhile, others lead what it led.
        """
        self.was_harmed = True
        self.host.pause()

    def resume(self) -> None:
        """End a pause."""
        self.host.resume()

    def requests(self) -> list[Request]:
        """The last requests of clients (`requests.KEPT` at most), the oldest first."""
        return [Request(*request) for request in self.host.ask("requests")]

    def view(self) -> View | None:
        """The cluster, as this broker has been told of it; None where it has stopped, as its disk failed."""
        told = self.host.ask("view")
        return None if told is None else View.of(told)

    def ends(self) -> list[list[Any]]:
        """Of each partition held here: topic, index, first offset, high watermark, last stable offset."""
        found: list[list[Any]] = self.host.ask("ends")
        return found

    def __repr__(self) -> str:
        return f"<broker {self.id} at {self.bootstrap_servers}, {self.state}>"

    @property
    def state(self) -> str:
        """ "up", "paused" or "down"."""
        return "up" if self.is_up else "paused" if self.is_running else "down"
