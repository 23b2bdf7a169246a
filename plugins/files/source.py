"""FilesSource: files into a topic. Its settings, and the docs on them, are `FilesSourceConfig`."""

from __future__ import annotations

import glob
import json
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connect.api import DataError, SourceConnector, SourceRecord, SourceTask
from plugins.files.config import FilesSourceConfig
from plugins.files.reader import FileReader
from plugins.files.timestamps import timestamp_rule

_TASK_FILES = "task.files"


class FilesSourceTask(SourceTask):
    """Reads its share of the files, one after the other; growing ones in turns."""

    def start(self, config: Mapping[str, str]) -> None:
        """Go to the committed position of every file."""
        self._config = FilesSourceConfig.parse(config)
        self._stamp = timestamp_rule(self._config)
        paths: list[str] = json.loads(config.get(_TASK_FILES) or json.dumps([self._config.file]))
        self._readers = deque(self._reader(Path(path)) for path in paths)

    def _reader(self, path: Path) -> FileReader:
        offset = self.context.offsets.offset({"filename": str(path)})
        return FileReader(path, self._config, offset)

    def poll(self) -> list[SourceRecord]:
        """A batch of one file."""
        for _ in range(len(self._readers)):
            reader = self._readers[0]
            values = reader.batch()
            if reader.ended:
                self._readers.popleft().close()
            elif not values:
                self._readers.rotate(-1)
            if values:
                return self._records(reader, values)
        if self._config.stop_at_eof and not self._readers:
            self.context.finished()
        return []

    def _records(self, reader: FileReader, values: list[Any]) -> list[SourceRecord]:
        topic, key_field, partition = self._config.topic, self._config.key_field, reader.partition
        try:
            times = self._stamp(values)
        except DataError as e:
            raise DataError(f"{reader.path}, before line {reader.offset['line'] + 1}: {e}") from e
        if key_field is None:
            records = [
                SourceRecord(topic, value, None, time, None, (), partition)
                for value, time in zip(values, times, strict=True)
            ]
        else:
            records = [
                SourceRecord(topic, value, value.get(key_field), time, None, (), partition)
                for value, time in zip(values, times, strict=True)
            ]
        records[-1].source_offset = reader.offset
        return records

    def stop(self) -> None:
        """Close the files."""
        for reader in getattr(self, "_readers", ()):
            reader.close()


class FilesSource(SourceConnector):
    """Shares the files out over the tasks, and watches patterns for new ones."""

    CONFIG = FilesSourceConfig
    VERSION = "1"
    task_class = FilesSourceTask

    def start(self, config: Mapping[str, str]) -> None:
        """Begin to watch, unless reading ends with the files there are."""
        self.config = dict(config)
        self._settings = FilesSourceConfig.parse(config)
        self._stopped = threading.Event()
        if not self._settings.stop_at_eof and any(map(glob.has_magic, self._settings.files)):
            threading.Thread(target=self._watch, name="files-watch", daemon=True).start()

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Every n-th file to a task."""
        paths = self._paths()
        count = max(1, min(max_tasks, len(paths)))
        return [{**self.config, _TASK_FILES: json.dumps(paths[i::count])} for i in range(count)]

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()

    def _paths(self) -> list[str]:
        if self._settings.file:
            return [self._settings.file]
        found: dict[str, None] = {}
        for pattern in self._settings.files:
            matches = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else [pattern]
            found.update(dict.fromkeys(p for p in matches if not Path(p).is_dir()))
        return list(found)

    def _watch(self) -> None:
        seen = self._paths()
        while not self._stopped.wait(self._settings.watch_interval_ms / 1000):
            paths = self._paths()
            if paths != seen:
                seen = paths
                self.context.request_task_reconfiguration()
