"""As-of joins, duplicates, best values and windows that close, exactly once. An application that is killed at
random moments, and once loses its state, writes what the test driver writes in one run.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.streams.support import matching
from tests.streams.support.running import NewName
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.tracebacks import assert_no_tracebacks

ROOT = Path(__file__).parents[4]


def killed(log: Path, *arguments: str, after: float) -> None:
    """Run the program and kill it so many seconds after its tasks run."""
    command = [sys.executable, "-m", matching.__name__, *arguments]
    with log.open("ab") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        # Not a wait for a condition: the moment of the kill is what is random.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(after)
    finally:
        process.kill()
        process.communicate()
    assert_no_tracebacks(log.read_text())


@depth.deep
@pytest.mark.parametrize("seed", [0, 1])
async def test_output_is_exact_over_kills(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, seed: int
) -> None:
    dice = random.Random(seed)
    prefix, state, log = new_name("matching"), tmp_path / "state", tmp_path / "streams.log"
    events = matching.make_events(1_500, seed=seed)
    rows = await matching.prepare(logd.bootstrap, prefix, events)
    for turn in range(2):
        killed(log, logd.bootstrap, prefix, str(state), after=dice.uniform(0.02, 0.2))
        if turn == seed:
            shutil.rmtree(state)  # what is left is the changelogs
    async with matching.application(logd.bootstrap, prefix, str(state)) as app:
        await app.wait_until_caught_up()
    output_rows, expected = await matching.written(logd.bootstrap, prefix), matching.expected(prefix, rows)
    for output, one, other in zip(matching.OUTPUTS, output_rows, expected, strict=True):
        assert one == other, output
