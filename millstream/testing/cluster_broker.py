"""A broker of a test cluster: its address, its state and its faults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream.testing.faults import NodeFaults
from millstream.testing.process import ProcessHost
from millstream.testing.request import Request
from millstream.testing.view import View


class ClusterBroker:
    """A broker in its own process, which `Cluster` creates and starts. `host` is for the cluster alone.

    `faults`: faults for the broker's clients and disk. Methods raise BrokerError.
    """

    def __init__(self, id: int, folder: Path, config: Mapping[str, object], *, keeps: bool) -> None:
        self.id = id
        self._config = {**config, "node.id": id}
        self.host = ProcessHost(folder, self._config, keeps=keeps, name=f"broker {id}")
        self.faults = NodeFaults(self.host)
        self.was_harmed = False
        """True if the broker was killed or paused since the cluster started."""

    @property
    def bootstrap_servers(self) -> str:
        """The address, ``host:port``, for clients that begin with this broker."""
        return f"127.0.0.1:{self.host.port}"

    @property
    def folder(self) -> Path:
        """The directory of the data and output."""
        return self.host.folder

    @property
    def log(self) -> str:
        """The output of the broker's process."""
        return self.host.log

    @property
    def is_running(self) -> bool:
        """True if the process is alive, paused or not."""
        return self.host.is_running

    @property
    def is_paused(self) -> bool:
        """True if the process is paused."""
        return self.host.is_paused

    @property
    def is_up(self) -> bool:
        """True if the process runs and is not paused."""
        return self.is_running and not self.is_paused

    def spawn(self, zookeeper: str) -> None:
        """Begin a start, which `host.wait` completes. `zookeeper`: for `zookeeper.connect`."""
        self.host.config = {**self._config, "zookeeper.connect": zookeeper}
        self.host.spawn()

    def kill(self) -> None:
        """Kill the process with SIGKILL.

        Others lead once its ZooKeeper session has expired; `start` starts it again.
        """
        self.was_harmed = True
        self.host.kill()

    def start(self) -> None:
        """Start again after `kill`, at the same address with the same data. Wait until the broker serves."""
        self.host.start()

    def restart(self) -> None:
        """Shut down in a controlled way and start again, at the same address with the same data."""
        self.host.resume()
        if self.is_running:
            self.host.ask("restart")
        else:
            self.host.start()

    def pause(self) -> None:
        """Pause the broker until `resume`: connections stay open, nothing is answered.

        Once its ZooKeeper session has expired, others lead its partitions.
        """
        self.was_harmed = True
        self.host.pause()

    def resume(self) -> None:
        """End a pause."""
        self.host.resume()

    def requests(self) -> list[Request]:
        """Return the last requests of clients (`requests.KEPT` at most), the oldest first."""
        return [Request(*request) for request in self.host.ask("requests")]

    def view(self) -> View | None:
        """Return this broker's view of the cluster; None if the broker has stopped after a disk failure."""
        answer = self.host.ask("view")
        return None if answer is None else View.of(answer)

    def ends(self) -> list[list[Any]]:
        """Return a row for each partition: topic, index, first offset, high watermark, last stable offset."""
        rows: list[list[Any]] = self.host.ask("ends")
        return rows

    def __repr__(self) -> str:
        return f"<broker {self.id} at {self.bootstrap_servers}, {self.state}>"

    @property
    def state(self) -> str:
        """The state: "up", "paused" or "down"."""
        return "up" if self.is_up else "paused" if self.is_running else "down"
