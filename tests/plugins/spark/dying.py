"""A worker that kills itself: `python -m tests.plugins.spark.dying STEP BOOTSTRAP TOPIC PATH SOCKET`.

It runs the sink's task for one batch. Spark is the driver that serves calls at SOCKET and lives on; with an
empty SOCKET it is one of the worker's own, which has to go with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plugins.spark import sink
from plugins.spark.driver import SparkDriver, call_driver
from plugins.spark.manifest import decode
from plugins.spark.table import ParquetTable
from tests.plugins.spark.log import Log
from tests.plugins.spark.sink_task import SCHEMA, start_task

STEPS = {
    "claim aside": False,  # The claim's manifest is written and not linked yet.
    "claimed": False,  # Files of earlier workers are still there.
    "planned": False,  # Spark has not begun.
    "written": False,  # Spark's files are complete.
    "batch aside": False,  # The batch's manifest is written and not linked yet.
    "batch linked": True,  # The batch's manifest is linked; the worker does not know.
    "committed": True,  # The worker knows, and has committed no offset.
}
"""Where a worker dies, and whether its batch is in the table then."""
WRITING = "writing"
"""A further step: Spark is writing the files."""


class Elsewhere(SparkDriver):
    """The driver of another process."""

    def __init__(self, socket: str) -> None:
        super().__init__()
        self._socket = socket

    def call(self, call: str, **arguments: Any) -> Any:
        return call_driver(self._socket, call, arguments)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(step: str, path: Path) -> None:
    """Patch what the step belongs to."""
    if step == WRITING:
        threading.Thread(target=die_while_written, args=(path,), daemon=True).start()
    elif step in ("planned", "written"):
        patch(SparkDriver, "write", before=step == "planned")
    elif step == "claimed":
        patch(ParquetTable, "claim", before=False)
    elif step == "committed":
        patch(ParquetTable, "commit", before=False, only=lambda table, manifest: bool(manifest.files))
    else:
        of_batch, before = step.startswith("batch"), step.endswith("aside")

        def is_it(aside: Path, name: Path) -> bool:
            return bool(decode(aside.read_bytes()).files) == of_batch

        patch(os, "link", before=before, only=is_it)


def patch(
    owner: Any, name: str, *, before: bool, only: Callable[..., bool] = lambda *arguments: True
) -> None:
    """Die before or after a call, of those that `only` holds for."""
    original = getattr(owner, name)

    def call(*arguments: Any) -> Any:
        meant = only(*arguments)
        if meant and before:
            die()
        result = original(*arguments)
        if meant:
            die()
        return result

    setattr(owner, name, call)


def being_written(path: Path) -> bool:
    """Return True while Spark writes a batch's files: they are begun, and not yet in their place."""
    with contextlib.suppress(OSError):
        return any(path.glob("data/*/_temporary/**/*.parquet"))
    return False


def die_while_written(path: Path) -> None:
    while not being_written(path):
        time.sleep(0.001)
    die()


def main(step: str, bootstrap: str, topic: str, folder: str, socket: str) -> None:
    if socket:
        sink.acquire_driver = lambda settings: Elsewhere(socket)
        sink.release_driver = lambda driver: None
    die_at(step, Path(folder))
    log = Log(bootstrap)
    task = start_task(log, topic, Path(folder), **SCHEMA)
    task.run_once(log.ends(topic))


if __name__ == "__main__":
    main(*sys.argv[1:])
