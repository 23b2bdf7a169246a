"""Fixtures of the tests of the files plugin."""

import pytest

from connect.testing import SourceRun


@pytest.fixture
def start():
    """Starts sources, and stops them in the end."""
    runs: list[SourceRun] = []

    def begin(*args, **options) -> SourceRun:
        runs.append(SourceRun(*args, **options))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()
