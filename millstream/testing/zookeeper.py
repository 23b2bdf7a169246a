"""The ZooKeeper of a test run's clusters, in its own process; `zookeeper_child` runs in the process."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Self

from millstream.testing.child_process import ChildProcess
from millstream.testing.errors import BrokerError

TICK_MS = 200
"""ZooKeeper's tick: sessions are checked at each one, and last from 2 to 20 ticks."""


class ZooKeeper:
    """A ZooKeeper server. Call `start` first and `stop` at the end.

    `folder`: the directory of data and output; without it a temporary one. ZooKeeper needs Java and the jars
    of PySpark: BrokerError says what is missing, and the remedy.
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
        """The value of `zookeeper.connect`, to which a path may be added.

        Raises BrokerError before `start`.
        """
        if not self._connect_string:
            raise BrokerError("ZooKeeper does not run: call start() first")
        return self._connect_string

    def start(self) -> Self:
        """Start ZooKeeper and wait until it serves. Raises BrokerError if it does not start."""
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
        """Stop ZooKeeper and remove its temporary folder. A second call does nothing."""
        self._child.end()
        self._connect_string = ""
        if not self._keeps:
            shutil.rmtree(self._folder, ignore_errors=True)
