"""FilesSource: reads files into a topic. `FilesSourceConfig` declares and documents its settings."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connect.api import ConnectError, DataError, SourceBatch, SourceConnector, SourceTask, schema
from plugins.files.config import FilesSourceConfig
from plugins.files.known import KnownFiles
from plugins.files.reader import START, FileReader
from plugins.files.share import Share, matches, plan
from plugins.files.timestamps import timestamp_rule

_LOOKS_IDLE = 1000
_LOOKS_BUSY = 50
"""How many waiting files a poll checks, if no file is ready and if one is."""
OPEN_MAX = 32
"""How many of the files last read to their ends keep their descriptor, so that they are followed when they
are renamed. Only the file that is being read is open besides.
"""
_log = logging.getLogger(__name__)


class FilesSourceTask(SourceTask):
    """A task that reads its files one after the other to their ends, and growing ones whenever they grow."""

    value_schema: schema.Schema | None = None
    """The schema of its values, if they have one."""

    def __init__(self) -> None:
        self._readers: dict[str, FileReader] = {}
        self._ended: set[str] = set()
        self._ready: deque[FileReader] = deque()
        self._waiting: deque[FileReader] = deque()
        """Files read to their ends, to be checked in turn."""
        self._open: dict[FileReader, None] = {}
        """Files read to their ends whose descriptors may be open, least recently read first."""
        self._skipping: dict[str, FileReader] = {}
        """Readers that have advanced without a record."""
        self._renamed: list[tuple[dict[str, str], dict[str, Any]]] = []
        """Source partitions and offsets of renamed files that were read under their old names."""
        self._registry = KnownFiles()
        self._look_at = 0.0
        self._reading = threading.Lock()
        """Held while files are read, as `stop` may be called during a `poll`."""

    def start(self, config: Mapping[str, str]) -> None:
        """Parse the config and look for files; each is read from its committed offset."""
        self._config = FilesSourceConfig.parse(config)
        self._stamp = timestamp_rule(self._config)
        self._share = Share(self._config, config)
        self._look_for_files()

    @property
    def files(self) -> list[str]:
        """Paths of the files that this task reads or waits for."""
        return list(self._readers)

    def statistics(self) -> dict[str, float]:
        """Return the counts of all, ready, waiting and open files, and the bound of the open ones."""
        return {
            "files": len(self._readers),
            "ready_files": len(self._ready),
            "waiting_files": len(self._waiting),
            "open_files": sum(reader.is_open for reader in {*self._open, *list(self._ready)[:1]}),
            "open_files_max": OPEN_MAX + 1,
        }

    def poll(self) -> SourceBatch | None:
        """Return the next batch, from one file, or None."""
        with self._reading:
            if self._share.is_watched and time.monotonic() >= self._look_at:
                self._look_for_files()
            self._look_at_waiting(_LOOKS_BUSY if self._ready else _LOOKS_IDLE)
            while self._ready:
                reader = self._ready[0]
                if values := self._batch(reader):
                    return self._records(reader, values)
            if self._config.stop_at_eof:
                self.context.finished()
            return None

    def update_offsets(self) -> list[tuple[dict[str, str], dict[str, Any]]]:
        """Return the offsets of files in which only input without records, as blank lines, was read."""
        with self._reading:
            skipping, self._skipping = self._skipping, {}
            renamed, self._renamed = self._renamed, []
            # A name's reader may still be on the file that had it before.
            return [*((reader.partition, reader.offset) for reader in skipping.values()), *renamed]

    def _batch(self, reader: FileReader) -> list[Any]:
        """Return a batch of the first ready file, and move the file if it waits or has ended."""
        before = reader.offset
        self._open.pop(reader, None)
        values = reader.batch()
        if reader.left:
            self._note_renamed(reader)
        if reader.ended:
            self._ready.popleft().close()
            self._ended.add(str(reader.path))
            del self._readers[str(reader.path)]
        elif reader.is_waiting:
            self._waiting.append(self._ready.popleft())
            self._keep_open(reader)
        if values:
            self._skipping.pop(str(reader.path), None)
        elif reader.offset != before:
            self._skipping[str(reader.path)] = reader
        return values

    def _note_renamed(self, reader: FileReader) -> None:
        """Have the ends of renamed files stored under their new names, if these are ours to read."""
        for path in self._share.paths():
            if (offset := reader.left.get(str(Path(path)))) is not None:
                self._renamed.append(({"filename": path}, offset))
        reader.left.clear()

    def _keep_open(self, reader: FileReader) -> None:
        self._open[reader] = None
        if len(self._open) > OPEN_MAX:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.release()

    def _look_at_waiting(self, most: int) -> None:
        for _ in range(min(most, len(self._waiting))):
            reader = self._waiting.popleft()
            if reader.has_changed():
                self._ready.append(reader)
            else:
                self._waiting.append(reader)

    def _look_for_files(self) -> None:
        """Add new files. Remove deleted files that were read to their ends and have their offset stored."""
        self._look_at = time.monotonic() + self._config.watch_interval_ms / 1000
        paths = dict.fromkeys(self._share.paths())
        self._ended &= paths.keys()
        for path in paths:
            if path not in self._readers and path not in self._ended:
                offset = self.context.offsets.offset({"filename": path})
                self._readers[path] = reader = FileReader(Path(path), self._config, offset, self._registry)
                self._ready.append(reader)
        deleted = {path for path in self._readers.keys() - paths if self._is_done(path)}
        if deleted:
            for path in deleted:
                reader = self._readers.pop(path)
                reader.forget()
                self._open.pop(reader, None)
            self._waiting = deque(reader for reader in self._waiting if str(reader.path) not in deleted)

    def _is_done(self, path: str) -> bool:
        reader = self._readers[path]
        stored = self.context.offsets.offset(reader.partition) or START
        return reader.is_waiting and stored == reader.offset

    def _records(self, reader: FileReader, values: list[Any]) -> SourceBatch:
        key_field = self._config.key_field
        place = f"{reader.path}, before line {reader.offset['line'] + 1}"
        try:
            times = self._stamp(values)
        except DataError as e:
            raise DataError(f"{place}: {e}") from e
        try:
            keys = None if key_field is None else [value.get(key_field) for value in values]
        except AttributeError:
            raise DataError(f"{place}: a value is no object, key.field={key_field} needs one") from None
        return SourceBatch(
            self._config.topic,
            values,
            keys=keys,
            timestamps=times,
            source_partition=reader.partition,
            source_offset=reader.offset,
            value_schema=self.value_schema,
        )

    def stop(self) -> None:
        """Close the files."""
        with self._reading:
            for reader in self._readers.values():
                reader.close()


class FilesSource(SourceConnector):
    """The connector of the files source, which distributes the files over tasks."""

    CONFIG = FilesSourceConfig
    VERSION = "1"
    task_class = FilesSourceTask

    def start(self, config: Mapping[str, str]) -> None:
        """Parse the config."""
        self.config = dict(config)
        self._settings = FilesSourceConfig.parse(config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return the tasks' configs: each task has every n-th file, or a share of watched patterns."""
        if self._settings.stop_at_eof and not self._settings.file and not matches(self._settings.files):
            _log.warning("files=%s: there is no such file", ",".join(self._settings.files))
        return [{**self.config, **share} for share in plan(self._settings, max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """Return True: each batch ends at the place in its file that its offset names."""
        return True

    def check_target(self, config: Mapping[str, str]) -> None:
        """Check that there are files, and that each may be read."""
        settings = FilesSourceConfig.parse(config)
        patterns = [settings.file] if settings.file else settings.files
        files = [path for path in matches(patterns) if Path(path).exists()]
        if not files:
            raise ConnectError(f"{', '.join(patterns)}: there is no such file yet")
        for path in files:
            if not os.access(path, os.R_OK):
                raise ConnectError(f"{path} may not be read by the user")
