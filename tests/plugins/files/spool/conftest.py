"""Fixtures of the tests of the spool source."""

import pytest

from connect.testing import SourceRun
from plugins.files import SpoolSource


@pytest.fixture
def spool(tmp_path):
    """Starts spool sources over `tmp_path/in`, and stops them in the end."""
    (tmp_path / "in").mkdir()
    runs: list[SourceRun] = []

    def begin(store=None, tasks=1, **more) -> SourceRun:
        config = {
            "topic": "t",
            "input.path": str(tmp_path / "in"),
            "cleanup.policy": "move",
            "finished.path": str(tmp_path / "done"),
            "file.minimum.age.ms": "0",
            "watch.interval.ms": "0",
        } | {k.replace("_", "."): str(v) for k, v in more.items()}
        runs.append(SourceRun(SpoolSource, config, store=store, max_tasks=tasks))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()


@pytest.fixture
def inbox(tmp_path, spool):
    return tmp_path / "in"


@pytest.fixture
def done(tmp_path):
    return tmp_path / "done"


def values(records):
    return [record.value for record in records]


def reported(run, task=0):
    """Return the rows that a task has reported, with the words of their errors."""
    return [(record.value, str(error)) for record, error in run.tasks[task].context.reported]
