"""One ZooKeeper server: a Java process with a folder of its own.

FOLDER/zoo.cfg     its settings     FOLDER/data/     myid, snapshots and log
FOLDER/server.log  what it says    FOLDER/classes.jsa    see `class_archive`, only as it ends
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from millstream.with_parent import with_parent
from millstream.zookeeper.class_archive import ClassArchive
from millstream.zookeeper.state import PATIENCE_SECONDS, NotServing, State, state

STOP_SECONDS = 10.0
_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Dlog4j2.level=INFO")
"""An ensemble of this size needs little: what counts is that it starts at once."""


class Server:
    """Made for a folder whose `zoo.cfg` is written; `start` it, then ask for its `state` until it serves."""

    def __init__(self, folder: Path, port: int, class_path: str) -> None:
        self.folder = folder
        self.port = port
        self._class_path = class_path
        self._archive = ClassArchive("zookeeper", class_path)
        self._draft = folder / "classes.jsa"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process that runs, or ran last."""
        assert self._process is not None, "never started"
        return self._process.pid

    @property
    def command(self) -> list[str]:
        """Its command line; who runs it by that instead of `start` watches it, too."""
        return self._command(self._archive.use())

    def _command(self, options: tuple[str, ...]) -> list[str]:
        return ["java", *_OPTIONS, *options, "-cp", self._class_path, _MAIN, str(self.folder / "zoo.cfg")]

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs, or has never been started."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start the process; also one that has ended, with the data it has. It does not outlive this one."""
        self._draft.unlink(missing_ok=True)
        with (self.folder / "server.log").open("ab") as output:
            self._process = subprocess.Popen(
                with_parent(self._command(self._archive.use_or_write(self._draft))),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C is for the command, which ends its servers itself.
                start_new_session=True,
            )

    def state(self, seconds: float = PATIENCE_SECONDS) -> State | None:
        """What it says of itself; None while it does not serve, or has not answered in so many seconds."""
        try:
            return state("127.0.0.1", self.port, seconds)
        except (OSError, NotServing):
            return None

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Have it end, and wait."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            self._archive.keep(self._draft)

    def said(self, lines: int = 20) -> str:
        """The end of what it wrote to its log."""
        text = (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])
