"""The numbers of a plugin's task, also of one that hangs or raises while they are read."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping

import pytest

from connect.runtime.plugin_statistics import PluginStatistics
from tests.support.waiting import wait_for


class Counting:
    """Counts its calls; while it is blocked they do not return."""

    def __init__(self) -> None:
        self.calls = 0
        self.free = threading.Event()
        self.free.set()

    def statistics(self) -> Mapping[str, float]:
        self.calls += 1
        calls = self.calls
        self.free.wait()
        return {"calls": calls}


WAIT = "connect.runtime.plugin_statistics._WAIT_SECONDS"


def test_a_call_that_hangs_is_waited_for_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Counting()
    monkeypatch.setattr(WAIT, 60.0)
    statistics = PluginStatistics("c-0", task)
    assert statistics.read() == {"calls": 1}
    task.free.clear()
    monkeypatch.setattr(WAIT, 0.05)
    for _ in range(3):
        assert statistics.read() == {"calls": 1}
    assert task.calls == 2
    assert caplog.text.count("c-0: its plugin's statistics() does not return") == 1
    task.free.set()
    wait_for(lambda: statistics.read() != {"calls": 1})


def test_what_a_plugin_raises_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Exiting:
        def statistics(self) -> Mapping[str, float]:
            sys.exit(1)

    statistics = PluginStatistics("c-0", Exiting())
    assert [statistics.read(), statistics.read()] == [{}, {}]
    assert caplog.text.count("c-0: its plugin's statistics() failed: SystemExit(1)") == 1
