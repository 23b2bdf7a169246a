"""An ensemble of ZooKeeper servers on this machine's loopback, in one folder.

    FOLDER/1, FOLDER/2, …     a server each

A folder that was used before keeps its ports and the servers' data, so that its connect string stays valid.
"""

from __future__ import annotations

import re
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from kafka_client.errors import ConfigError, MillstreamError
from millstream.free_ports import candidates
from millstream.zookeeper.server import Server

READY_SECONDS = 60.0
LOOK_AGAIN_S = 0.02
PATIENCE_S, PATIENCE_SHARE = 0.25, 0.25
"""The wait for a server's state before the next try, in seconds or as a share of the time since its start.

A server that is starting may never answer.
"""
TICK_MS = 2000
"""ZooKeeper's default tick; sessions last from 2 to 20 ticks."""
_COMMANDS = "srvr, stat, ruok, mntr, cons, dump, wchs"
"""The four-letter commands that servers answer."""
_PORTS = re.compile(r"^server\.(\d+)=127\.0\.0\.1:(\d+):(\d+);127\.0\.0\.1:(\d+)$", re.MULTILINE)


class ZooKeeperError(MillstreamError):
    """ZooKeeper does not start here; the text says what is missing or wrong."""


class Ports(NamedTuple):
    """The ports of a server: for its followers, for elections, for clients."""

    quorum: int
    election: int
    client: int


class Ensemble:
    """ZooKeeper servers, used as a context manager or by `start` and `stop`; `servers` are their processes.

    `class_path`: ZooKeeper's jars and their dependencies; None: those of PySpark. Raises ConfigError for a
    folder with an ensemble of another size.
    """

    def __init__(
        self, folder: Path, nodes: int = 1, *, tick_ms: int = TICK_MS, class_path: str | None = None
    ) -> None:
        if shutil.which("java") is None:
            raise ZooKeeperError(
                "ZooKeeper needs Java, and there is no java in PATH: install a JRE (17 or newer)"
            )
        path = class_path or jars_of_pyspark()
        ports = _ports_of(folder) or _free_ports(nodes)
        if len(ports) != nodes:
            raise ConfigError(
                "nodes", nodes, f"{folder} holds an ensemble of {len(ports)}: say so, or take another folder"
            )
        self.servers = [
            _laid_out(folder / str(number), number, ports, tick_ms, path) for number in range(1, nodes + 1)
        ]

    @property
    def connect_string(self) -> str:
        """The value of `zookeeper.connect`."""
        return ",".join(server.address for server in self.servers)

    def start(self) -> Self:
        """Start all servers and wait until each serves.

        Raises ZooKeeperError with the log of one that does not.
        """
        for server in self.servers:
            server.start()
        began = time.monotonic()
        for server in self.servers:
            while server.state(max(PATIENCE_S, PATIENCE_SHARE * (time.monotonic() - began))) is None:
                if server.status is not None or time.monotonic() > began + READY_SECONDS:
                    self.stop()
                    raise ZooKeeperError(
                        f"{server.address} does not serve; {server.folder}: {server.log_end()}"
                    )
                time.sleep(LOOK_AGAIN_S)
        return self

    def stop(self) -> None:
        """Stop all servers."""
        for server in self.servers:
            server.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _laid_out(folder: Path, number: int, ports: Sequence[Ports], tick_ms: int, class_path: str) -> Server:
    """Write a server's files and return the server."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    (data / "myid").write_text(f"{number}\n")
    own = ports[number - 1]
    lines = [
        f"tickTime={tick_ms}",
        "initLimit=10",
        "syncLimit=5",
        f"dataDir={data.absolute()}",
        "admin.enableServer=false",
        f"4lw.commands.whitelist={_COMMANDS}",
        "maxClientCnxns=0",
        "autopurge.purgeInterval=1",
        *(
            f"server.{index}=127.0.0.1:{each.quorum}:{each.election};127.0.0.1:{each.client}"
            for index, each in enumerate(ports, 1)
        ),
    ]
    # A single server runs standalone, since a quorum of one would hold elections.
    lines += ["standaloneEnabled=true"] if len(ports) == 1 else []
    (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
    return Server(folder, own.client, class_path)


def _ports_of(folder: Path) -> list[Ports]:
    """Return the ports of an earlier ensemble in this folder; none if there was none."""
    try:
        text = (folder / "1" / "zoo.cfg").read_text()
    except OSError:
        return []
    return [Ports(*map(int, ports)) for _, *ports in sorted(_PORTS.findall(text), key=lambda f: int(f[0]))]


def _free_ports(nodes: int) -> list[Ports]:
    with ExitStack() as stack:
        free = _bound(stack)
        return [Ports(next(free), next(free), next(free)) for _ in range(nodes)]


def _bound(stack: ExitStack) -> Iterator[int]:
    """Yield free ports. Each stays bound until `stack` is closed."""
    for port in candidates():
        probe = stack.enter_context(socket.socket())
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        yield int(probe.getsockname()[1])


def jars_of_pyspark() -> str:
    """Return the class path of PySpark's jars.

    Raises ZooKeeperError if PySpark or its ZooKeeper is missing.
    """
    from importlib.util import find_spec

    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ZooKeeperError(
            "ZooKeeper's jars come with PySpark, which is not installed: pip install 'millstream[spark]', or "
            "name those of another installation by --class-path"
        )
    jars = Path(spec.origin).parent / "jars"
    if not any(jars.glob("zookeeper-[0-9]*.jar")):
        raise ZooKeeperError(f"there is no ZooKeeper in {jars}: name its jars by --class-path")
    return str(jars / "*")
