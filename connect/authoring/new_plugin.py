"""Files of a new connector plugin: the connector, its test and a config to run it.

The connector works as it is, on a folder with a file per record. So its test passes before the author puts
another system in the folder's place.
"""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Literal, TypeAlias

from connect.errors import ConfigError

Role: TypeAlias = Literal["source", "sink"]

_SOURCE = '''\
"""{title}: a source connector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Event

from connect.api import Config, SourceConnector, SourceRecord, SourceTask, setting


class {title}Config(Config):
    """Reads a folder of JSON files, in the order of their names."""

    folder: str = setting("The folder that is read.", importance="HIGH")
    topic: str = setting("The topic of the records.", importance="HIGH")
    batch_max: int = setting("Records per poll at most.", default=100)


class {title}Task(SourceTask):
    """Reads the files behind the last one that was committed."""

    def start(self, config: Mapping[str, str]) -> None:
        """Open the source at the committed offset."""
        self._config = {title}Config.parse(config)
        self._partition = {{"folder": self._config.folder}}
        self._after: str = (self.context.offsets.offset(self._partition) or {{}}).get("file", "")
        self._stopping = Event()

    def poll(self) -> list[SourceRecord]:
        """Return the next records; wait a moment if there are none."""
        names = sorted(path.name for path in Path(self._config.folder).glob("*.json"))
        new = [name for name in names if name > self._after][: self._config.batch_max]
        if not new:
            self._stopping.wait(0.1)
        return [self._record(name) for name in new]

    def _record(self, name: str) -> SourceRecord:
        self._after = name
        value = json.loads((Path(self._config.folder) / name).read_text())
        return SourceRecord(
            self._config.topic,
            value,
            source_partition=self._partition,
            source_offset={{"file": name}},
        )

    def stop(self) -> None:
        """End a poll that waits."""
        self._stopping.set()


class {title}(SourceConnector):
    """Plans one task, as one folder is read in order."""

    CONFIG = {title}Config
    VERSION = "0.1"
    task_class = {title}Task
'''
_SOURCE_TEST = '''\
"""Tests of {title}: the conformance suite, and what is special about it."""

import json
from pathlib import Path

from connect.api import SourceRecord
from connect.testing import SourceRun
from connect.testing.conformance import SourceConformance
from {module} import {title}


class Test{title}(SourceConformance):
    connector = {title}
    poll_max = 10

    def config(self, folder: Path) -> dict[str, str]:
        return {{"folder": str(folder), "topic": "numbers", "batch.max": "10"}}

    def add(self, folder: Path, numbers: range) -> None:
        for number in numbers:
            (folder / f"{{number:09}}.json").write_text(json.dumps({{"number": number}}))


def test_a_record_has_the_files_value(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('{{"a": 1}}')
    run = SourceRun({title}, {{"folder": str(tmp_path), "topic": "t"}})
    [record] = run.records()
    run.stop()
    assert isinstance(record, SourceRecord)
    assert (record.topic, record.value) == ("t", {{"a": 1}})
'''
_SINK = '''\
"""{title}: a sink connector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect.api import Config, DataError, SinkConnector, SinkRecord, SinkTask, TopicPartition, setting


class {title}Config(Config):
    """Writes each record to a file of its own."""

    folder: str = setting("The folder that is written to.", importance="HIGH")


class {title}Task(SinkTask):
    """Writes files named by topic, partition and offset, so that a redelivered record is there once."""

    def start(self, config: Mapping[str, str]) -> None:
        """Open the target."""
        self._folder = Path({title}Config.parse(config).folder)
        self._texts: dict[str, str] = {{}}

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take records; they are written at the flush."""
        for record in records:
            try:
                text = json.dumps(record.value)
            except TypeError as e:
                place = f"{{record.topic}}-{{record.partition}}, offset {{record.offset}}"
                raise DataError(f"{{place}}: {{e}}") from e
            self._texts[f"{{record.topic}}-{{record.partition}}-{{record.offset}}.json"] = text

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write what was put. After this the worker commits the offsets."""
        for name, text in self._texts.items():
            (self._folder / name).write_text(text)
        self._texts.clear()


class {title}(SinkConnector):
    """Divides the topics' partitions among `tasks.max` tasks."""

    CONFIG = {title}Config
    VERSION = "0.1"
    task_class = {title}Task
'''
_SINK_TEST = '''\
"""Tests of {title}: the conformance suite, and what is special about it."""

import json
from pathlib import Path

import pytest

from connect.api import DataError, SinkRecord
from connect.testing import SinkRun
from connect.testing.conformance import SinkConformance
from {module} import {title}


class Test{title}(SinkConformance):
    connector = {title}
    exactly_once = True

    def config(self, folder: Path) -> dict[str, str]:
        return {{"folder": str(folder)}}

    def read(self, folder: Path) -> list[int]:
        return [json.loads(path.read_text())["number"] for path in folder.glob("*.json")]


def test_a_value_that_is_no_json_is_refused(tmp_path: Path) -> None:
    with SinkRun({title}, {{"folder": str(tmp_path)}}) as run:
        with pytest.raises(DataError, match="t-0, offset 7"):
            run.put([SinkRecord("t", 0, 7, value={{1, 2}})])
'''
_PROPERTIES = {
    "source": "name={module}\nconnector.class={module}:{title}\ntasks.max=1\nfolder=in\ntopic={module}\n",
    "sink": "name={module}\nconnector.class={module}:{title}\ntasks.max=1\nfolder=out\ntopics={module}\n",
}
_TEMPLATES: dict[str, tuple[str, str]] = {"source": (_SOURCE, _SOURCE_TEST), "sink": (_SINK, _SINK_TEST)}


def write_plugin(name: str, role: Role, folder: Path) -> list[Path]:
    """Write a new plugin's files to `folder` and return their paths.

    `name` is the module's name; the class is named after it in CamelCase. Raises ConfigError if the name
    cannot be a module's, or if one of the files exists.
    """
    module = name.replace("-", "_")
    if not module.isidentifier() or keyword.iskeyword(module):
        raise ConfigError("NAME", name, "must be a name for a Python module: letters, digits and _")
    title = "".join(part[:1].upper() + part[1:] for part in module.split("_"))
    connector, test = _TEMPLATES[role]
    texts = {
        folder / f"{module}.py": connector,
        folder / f"test_{module}.py": test,
        folder / f"{module}.properties": _PROPERTIES[role],
    }
    for path in texts:
        if path.exists():
            raise ConfigError("NAME", name, f"{path} exists already: choose another name or folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text.format(title=title, module=module))
    return list(texts)
