"""SpoolSource: takes whole files of a folder. `SpoolSourceConfig` declares and documents its settings."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connect.api import ConfigError, ConnectError, SourceBatch, SourceConnector, SourceTask
from plugins.files.spool.cleanup import clean_up
from plugins.files.spool.config import SpoolSourceConfig
from plugins.files.spool.csv_schema import CsvSchema
from plugins.files.spool.file import FileFailed, SpoolFile, StillWritten
from plugins.files.spool.folder import FILES_MAX, Entry, SpoolFolder
from plugins.files.spool.offset import FileOffset, partition_of
from plugins.files.spool.records import Recorder

_INDEX = "task.index"
_COUNT = "task.count"
_log = logging.getLogger(__name__)


class SpoolSourceTask(SourceTask):
    """A task that reads its files one after the other, and puts away those whose offsets are committed."""

    def __init__(self) -> None:
        self._queue: deque[Entry] = deque()
        self._file: SpoolFile | None = None
        self._over: dict[str, SpoolFile] = {}
        """Files that are done or have failed and are not put away yet, by name."""
        self._staying: dict[str, FileOffset] = {}
        """Files that were read and stay in the folder, by name."""
        self._skipped: dict[str, SpoolFile] = {}
        """Files that were read on without a record, by name; `update_offsets` takes them."""
        self._look_at = 0.0
        self._reading = threading.Lock()
        """Held while files are read, as `stop` may be called during a `poll`."""

    def start(self, config: Mapping[str, str]) -> None:
        """Parse the config. Raises ConnectError if this worker does not have the folder."""
        self._config = SpoolSourceConfig.parse(config)
        self._recorder = Recorder(self._config, self.context.report)
        self._folder = SpoolFolder(self._config, int(config.get(_INDEX, 0)), int(config.get(_COUNT, 1)))
        if not self._folder.root.is_dir():
            raise ConnectError(
                f"input.path={self._config.input_path}: there is no such folder on this worker"
            )

    def statistics(self) -> dict[str, float]:
        """Return the counts of files that wait, and of files that are read and not put away yet."""
        return {
            "waiting_files": len(self._queue),
            "waiting_files_max": FILES_MAX,
            "files_to_put_away": len(self._over),
        }

    def poll(self) -> SourceBatch | None:
        """Return the next records of one file, or None."""
        with self._reading:
            while (file := self._file or self._next()) is not None:
                self._file = file
                try:
                    rows = file.read()
                except StillWritten:
                    _log.warning("%s is still written to; it is read on when it stands still", file)
                    self._leave(file)
                    continue
                except FileFailed as e:
                    self._fail(file, e)
                    continue
                batch = self._recorder.batch(file, rows)
                if file.offset.done:
                    self._leave(file)
                    self._over[file.name] = file
                if batch is not None:
                    self._skipped.pop(file.name, None)
                    return batch
                self._skipped[file.name] = file
                if rows.bad:
                    return None  # the worker takes the bad rows before the next ones
            return None

    def _next(self) -> SpoolFile | None:
        """Open the next file; None if there is none now."""
        while self._queue or self._look():
            entry = self._queue.popleft()
            file = SpoolFile(entry, self._config, self._stored(entry.name))
            try:
                file.open()
            except FileNotFoundError:
                continue
            except FileFailed as e:
                self._fail(file, e)
                continue
            if not file.offset.is_over:
                return file
            self._over[file.name] = self._skipped[file.name] = file  # another copy of what was read
        return None

    def _look(self) -> bool:
        """Look for files if that is due. Return True if there are any."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + self._config.watch_interval_ms / 1000
        staying, self._staying = self._staying, {}
        self._queue.extend(self._folder.files(lambda entry: self._is_wanted(entry, staying)))
        self._put_away()  # what a worker that was killed has left
        return bool(self._queue)

    def _is_wanted(self, entry: Entry, staying: Mapping[str, FileOffset]) -> bool:
        """Return False for a file that was read; one that should be gone is put away again."""
        if entry.name in self._over:
            return False
        offset = staying.get(entry.name) or self._stored(entry.name)
        if offset is None or not offset.is_over or not offset.identity.has_status(entry.status):
            return True
        if self._config.cleanup_policy == "none":
            self._staying[entry.name] = offset
        else:
            self._over[entry.name] = SpoolFile(entry, self._config, offset)
        return False

    def _stored(self, name: str) -> FileOffset | None:
        return FileOffset.parse(self.context.offsets.offset(partition_of(name)))

    def _leave(self, file: SpoolFile) -> None:
        file.close()
        self._file = None

    def _fail(self, file: SpoolFile, error: FileFailed) -> None:
        """Set the file aside. Raises the error if that is to fail the task."""
        self._leave(file)
        if self._config.halt_on_error:
            raise error
        _log.error("%s; the file is set aside", error)
        file.offset = file.offset._replace(failed=True)
        self._over[file.name] = self._skipped[file.name] = file

    def update_offsets(self) -> list[tuple[dict[str, str], dict[str, Any]]]:
        """Return the offsets of files that were read on without a record, and of files set aside."""
        with self._reading:
            skipped, self._skipped = self._skipped, {}
            return [(file.partition, file.offset.document()) for file in skipped.values()]

    def commit(self) -> None:
        """Put away the files whose last offset is committed."""
        with self._reading:
            self._put_away()

    def _put_away(self) -> None:
        for name, file in list(self._over.items()):
            if self._stored(name) == file.offset:
                clean_up(file.path, name, file.offset, self._config)
                del self._over[name]

    def stop(self) -> None:
        """Close the file that is read."""
        with self._reading:
            if self._file is not None:
                self._leave(self._file)


class SpoolSource(SourceConnector):
    """The connector of the spool source; each task has a share of the folder's files, by their names."""

    CONFIG = SpoolSourceConfig
    VERSION = "1"
    task_class = SpoolSourceTask

    def validate(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        """Return the errors of declared columns."""
        declared = SpoolSourceConfig.parse(config).csv_schema
        try:
            CsvSchema(declared, [text.rpartition(":")[0].strip() for text in declared])
        except ConfigError as e:
            return {"csv.schema": [str(e)]}
        return {}

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return the tasks' configs, which name each task's share."""
        return [{**self.config, _INDEX: str(i), _COUNT: str(max_tasks)} for i in range(max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """Return True: an offset is the exact place behind its record, and files go by committed offsets."""
        return True

    def check_target(self, config: Mapping[str, str]) -> None:
        """Check that the folder can be read, and that files can be taken out of it."""
        settings = SpoolSourceConfig.parse(config)
        folder = Path(settings.input_path)
        if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
            raise ConnectError(f"input.path={folder} is no folder that may be read by the user")
        if settings.cleanup_policy != "none" and not os.access(folder, os.W_OK):
            raise ConnectError(f"input.path={folder}: files may not be moved out of it or deleted in it")
