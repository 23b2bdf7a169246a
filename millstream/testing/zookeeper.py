"""The ZooKeeper of a test run's clusters, in a process of its own; `zookeeper_child` is its inside."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Self

from millstream.testing.child_process import ChildProcess
from millstream.testing.errors import BrokerError

TICK_MS = 200
"""Sessions are looked at each tick, and last from 2 to 20 of them."""


class ZooKeeper:
    """Call `start`, in the end `stop`. `folder`: where data and output are; a temporary one unless given.

    It takes Java and ZooKeeper's jars, as PySpark has them: BrokerError says what is missing, and the remedy.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._keeps = folder is not None
        self._folder = folder or Path(tempfile.mkdtemp(prefix="millstream-zookeeper-")).resolve()
        self._child = ChildProcess(
            "ZooKeeper", "millstream.testing.zookeeper_child", self._folder / "said.log"
        )
        self._connect_string = ""

    @property
    def connect_string(self) -> str:
        """For `zookeeper.connect`, a path may follow; `start` comes first."""
        if not self._connect_string:
            raise BrokerError("ZooKeeper does not run: call start() first")
        return self._connect_string

    def start(self) -> Self:
        """Start it and wait until it serves. BrokerError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._child.spawn(
                {"folder": str(self._folder), "keeps": self._keeps, "tick_ms": TICK_MS},
            )
            self._connect_string = self._child.answer()
        except BrokerError:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it; a temporary folder goes with it. Once more does nothing."""
        self._child.end()
        self._connect_string = ""
        if not self._keeps:
            shutil.rmtree(self._folder, ignore_errors=True)
