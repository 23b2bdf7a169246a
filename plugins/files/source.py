"""FilesSource: files into a topic. Its settings, and the docs on them, are `FilesSourceConfig`."""

from __future__ import annotations

import glob
import json
import logging
import threading
from collections import deque
from collections.abc import Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

from connect.api import DataError, SourceConnector, SourceRecord, SourceTask
from plugins.files.config import FilesSourceConfig
from plugins.files.reader import FileReader
from plugins.files.timestamps import timestamp_rule

_TASK_FILES = "task.files"
_log = logging.getLogger(__name__)


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
        place = f"{reader.path}, before line {reader.offset['line'] + 1}"
        try:
            times = self._stamp(values)
        except DataError as e:
            raise DataError(f"{place}: {e}") from e
        try:
            keys = repeat(None) if key_field is None else [value.get(key_field) for value in values]
        except AttributeError:
            raise DataError(f"{place}: a value is no object, key.field={key_field} needs one") from None
        records = [
            SourceRecord(topic, value, key, time, None, (), partition)
            for value, key, time in zip(values, keys, times, strict=False)
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
        self._planned = self._paths()
        if not self._settings.stop_at_eof and any(map(glob.has_magic, self._settings.files)):
            threading.Thread(target=self._watch, name="files-watch", daemon=True).start()

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Every n-th file to a task."""
        self._planned = paths = self._paths()
        if not paths and self._settings.stop_at_eof:
            _log.warning("files=%s: there is no such file", ",".join(self._settings.files))
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
        while not self._stopped.wait(self._settings.watch_interval_ms / 1000):
            if self._paths() != self._planned:
                self.context.request_task_reconfiguration()
