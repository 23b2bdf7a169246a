"""The children of a killed process end as well."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from millstream.with_parent import with_parent
from tests.support.depth import deep
from tests.support.waiting import wait_for

COMMAND = ["sleep", "1000"]
PARENT = """
import signal, subprocess, sys
from millstream.with_parent import with_parent
child = subprocess.Popen(with_parent(sys.argv[2:], signal.Signals(int(sys.argv[1]))), start_new_session=True)
print(child.pid, flush=True)
sys.stdin.read()
"""


@deep
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_its_parent(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(int(number)), *COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child = Path(f"/proc/{parent.stdout.readline().strip()}")
        wait_for(lambda: (child / "cmdline").read_text().startswith("sleep"))
        parent.kill()
    wait_for(lambda: not child.exists())


def test_one_that_another_thread_starts_does_not_end_with_that_thread() -> None:
    commands: list[list[str]] = []
    thread = threading.Thread(target=lambda: commands.append(with_parent(COMMAND)))
    thread.start()
    thread.join()
    assert commands == [COMMAND]
