"""The run of the command: start the servers, report those that die, and stop them after a signal."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

from millstream.terminal.status import Status
from millstream.zookeeper.ensemble import Ensemble

LOOK_S = 0.2


def run(folder: Path | None, nodes: int, tick_ms: int, class_path: str | None) -> int:
    """Run an ensemble until a signal, or until all of its servers have ended. Return the exit status."""
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    with ExitStack() as stack:
        place = folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="millstream-zookeeper-"))
        )
        ensemble = stack.enter_context(Ensemble(place, nodes, tick_ms=tick_ms, class_path=class_path))
        print(f"ZooKeeper ready at {ensemble.connect_string}", flush=True)
        running = list(ensemble.servers)
        while running and not ending.wait(LOOK_S):
            for server in [each for each in running if each.status is not None]:
                running.remove(server)
                print(
                    f"millstream zookeeper: {server.address} ended with status {server.status}, see "
                    f"{server.folder / 'server.log'}",
                    file=sys.stderr,
                )
        return Status.OK if running else Status.FAILED
