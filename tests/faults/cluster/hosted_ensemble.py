"""Servers of ZooKeeper on hosts of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from millstream.zookeeper.ensemble import Ensemble
from millstream.zookeeper.server import Server
from millstream.zookeeper.state import NotServing, State, state
from tests.support.hosts import Hosts
from tests.support.network import End

PATIENCE_S = 1.0
"""Seconds until a server that is not reached is asked again."""


class HostedServer(Server):
    """A server that another one is laid out for, on a host."""

    def __init__(self, laid_out: Server, hosts: Hosts, end: End) -> None:
        super().__init__(laid_out.folder, laid_out.port, laid_out._class_path)
        self._host = hosts.address(end)
        self._inside = hosts.inside(end)

    @property
    def address(self) -> str:
        return f"{self._host}:{self.port}"

    def _command(self, options: tuple[str, ...]) -> list[str]:
        return [*self._inside, *super()._command(options)]

    def state(self, seconds: float = PATIENCE_S) -> State | None:
        try:
            return state(self._host, self.port, min(seconds, PATIENCE_S))
        except (OSError, NotServing):
            return None


class HostedEnsemble(Ensemble):
    """`ends`: the hosts, one for each server."""

    def __init__(self, folder: Path, hosts: Hosts, ends: Sequence[End], *, tick_ms: int) -> None:
        super().__init__(folder, len(ends), tick_ms=tick_ms)
        for server in self.servers:
            settings = server.folder / "zoo.cfg"
            lines = settings.read_text().splitlines()
            for number, end in enumerate(ends, 1):
                own = f"server.{number}="
                lines = [
                    x.replace("127.0.0.1", hosts.address(end)) if x.startswith(own) else x for x in lines
                ]
            settings.write_text("\n".join(lines) + "\n")
        self.servers = [
            HostedServer(server, hosts, end) for server, end in zip(self.servers, ends, strict=True)
        ]
