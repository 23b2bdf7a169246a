"""A sink for worker processes, whose target is slow or full for as long as a file of that name exists."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect.api import RetriableError, SinkConnector, SinkRecord, SinkTask


class MoodyTask(SinkTask):
    """A task that appends the keys of its records to the file `taken` in its connector's `folder`."""

    def start(self, config: Mapping[str, str]) -> None:
        """Open the folder."""
        self._folder = Path(config["folder"])

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Append the keys; wait while the file `slow` exists, and refuse them while `full` does."""
        self._append("tries", [str(len(records))])
        while (self._folder / "slow").exists():
            time.sleep(0.01)
        if (self._folder / "full").exists():
            raise RetriableError("the target is full")
        self._append("taken", [str(record.key) for record in records])

    def _append(self, name: str, lines: list[str]) -> None:
        with (self._folder / name).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)


class MoodySink(SinkConnector):
    """The connector."""

    task_class = MoodyTask


class Target:
    """The folder of a `MoodySink`, as a test sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    @property
    def config(self) -> dict[str, str]:
        """The settings of a connector that writes here."""
        return {
            "connector.class": f"{__name__}:MoodySink",
            "folder": str(self.folder),
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        }

    def begin(self, mood: str) -> None:
        """Be `slow` or `full` from now on."""
        (self.folder / mood).touch()

    def end(self, mood: str) -> None:
        """Take records as usual again."""
        (self.folder / mood).unlink()

    @property
    def tries(self) -> int:
        """The number of puts so far."""
        return len(self._lines("tries"))

    @property
    def keys(self) -> list[int]:
        """The keys of the records taken so far."""
        return [int(line) for line in self._lines("taken")]

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []
