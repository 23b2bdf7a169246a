"""A ZooKeeper server: a Java process with a folder of its own.

FOLDER/zoo.cfg     the settings     FOLDER/data/        myid, snapshots and log
FOLDER/server.log  the output      FOLDER/classes.jsa  see `class_archive`, only while it ends
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from millstream.with_parent import with_parent
from millstream.zookeeper.class_archive import ClassArchive
from millstream.zookeeper.state import PATIENCE_SECONDS, NotServing, State, state

STOP_SECONDS = 30.0
_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Dlog4j2.level=INFO")
"""Options of the virtual machine for a small heap and a fast start."""


class Server:
    """A server of a folder whose `zoo.cfg` is written. Call `start`, then `state` until it serves."""

    def __init__(self, folder: Path, port: int, class_path: str) -> None:
        self.folder = folder
        self.port = port
        self._class_path = class_path
        self._archive = ClassArchive("zookeeper", class_path)
        self._draft = folder / "classes.jsa"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The id of the current or last process."""
        assert self._process is not None, "never started"
        return self._process.pid

    @property
    def command(self) -> list[str]:
        """The command line, for callers that run and watch the process themselves."""
        return self._command(self._archive.use())

    def _command(self, options: tuple[str, ...]) -> list[str]:
        return ["java", *_OPTIONS, *options, "-cp", self._class_path, _MAIN, str(self.folder / "zoo.cfg")]

    @property
    def status(self) -> int | None:
        """The exit status; None while the process runs, or before the first start."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start the process, with the existing data. It does not outlive this process."""
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
        """Return the state that the server reports; None if it does not serve, or not answer in `seconds`."""
        try:
            return state("127.0.0.1", self.port, seconds)
        except (OSError, NotServing):
            return None

    def kill(self) -> None:
        """Kill the process, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Stop the process and wait for its end."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            self._archive.keep(self._draft)

    def log_end(self, lines: int = 20) -> str:
        """Return the last lines of the log."""
        text = (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])
