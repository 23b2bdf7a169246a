"""An application that has no event loop of its own runs in uvloop's, where there is one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from streams import State
from tests.streams.support.running import NewName, copy, make_topics, run
from tests.support.logd_process import LogdProcess


@pytest.mark.parametrize("installed", [True, False])
def test_run_takes_uvloop_where_it_is_installed(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    name, loops = new_name("loop"), set[str]()
    run(lambda: make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1}))
    if not installed:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    app = copy(logd.bootstrap, name, tmp_path)

    def listener(new: State, old: State) -> None:
        loops.add(type(asyncio.get_running_loop()).__module__.partition(".")[0])
        if new is State.RUNNING:
            os.kill(os.getpid(), signal.SIGTERM)

    app.add_state_listener(listener)
    app.run()
    assert loops == {"uvloop" if installed else "asyncio"}
    assert app.state is State.NOT_RUNNING
