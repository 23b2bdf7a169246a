"""A program that kills itself at a step of a commit that is no transaction: `die` is for the program,
`run_until_dead` for who starts it. The steps of a transaction are in `tests.faults.streams.kill_points`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from kafka_client import BatchProducer, GroupMember
from streams.runtime.task.task import Task
from tests.faults.streams.kill_points import Point, at_call
from tests.support.tracebacks import assert_no_tracebacks

KILL_AT = "STREAMS_KILL_AT"
"""Environment: ``STEP:N`` of `STEPS`, at whose N-th time the process kills itself."""
STEPS: dict[str, Point] = {
    "batch to be sent": (BatchProducer, "send_batch", False),
    "batch sent": (BatchProducer, "send_batch", True),
    "positions to be committed": (GroupMember, "commit", False),
    "positions committed": (GroupMember, "commit", True),
    "a store written": (Task, "written", True),
}
ROOT = Path(__file__).parents[3]
SECONDS = 60.0


def die() -> None:
    """Have this process die where its environment says."""
    if at := os.environ.get(KILL_AT):
        step, _, number = at.partition(":")
        at_call(STEPS[step], int(number), lambda: os.kill(os.getpid(), signal.SIGKILL))


def run_until_dead(program: str, at: str, log: Path, *arguments: str) -> None:
    """Run a module that calls `die`: it has to have died of that, and of nothing else."""
    with log.open("wb") as output:
        ended = subprocess.run(
            [sys.executable, "-m", program, *arguments],
            env=os.environ | {KILL_AT: at},
            stdout=output,
            stderr=output,
            cwd=ROOT,
            timeout=SECONDS,
        )
    assert ended.returncode == -signal.SIGKILL, log.read_text()
    assert_no_tracebacks(log.read_text())
