"""A sink's worker stands still beyond its session (SIGSTOP), another goes on, and the first comes back.

What it was doing when it stopped goes on at once, before anybody can tell it that its partitions are
another's: its small file replaced the other's larger one of the same name, and records were gone for good.
"""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.support import depth
from tests.support.standing_still import stands_still

pytestmark = depth.deep

ROWS = 2000


def written(out: Path) -> list[int]:
    """Field `n` of everything in whole files."""
    numbers = []
    for path in out.glob("[!.]*/*.jsonl"):
        numbers += [int(json.loads(line)["n"]) for line in path.read_text().splitlines()]
    return sorted(numbers)


@pytest.mark.parametrize("point", depth.first(1, ["rename", "open", "write", "fsync"]))
def test_a_worker_that_comes_back_writes_nothing_over_what_others_wrote(kit, rows, topic, tmp_path, point):
    out = tmp_path / "out"
    source = kit.source(rows(ROWS), topic) | {"topic.creation.default.partitions": "1"}
    kit.finish(source)
    kit.settings |= {
        "consumer.session.timeout.ms": "3000",
        "consumer.heartbeat.interval.ms": "200",
        "offset.storage.file.filename": str(tmp_path / "offsets-first"),
    }
    sink = kit.sink(out, topic)
    still = {"connector.class": "tests.plugins.files.standing_still:StandingStill", "stand.still": point}
    first = kit.spawn(sink | still | {"file.records.max": "100"})
    kit.wait_until(lambda: stands_still(first.pid), first)

    kit.settings["offset.storage.file.filename"] = str(tmp_path / "offsets-second")
    second = kit.spawn(sink)
    kit.wait_until(lambda: len(written(out)) == ROWS, second)
    os.kill(first.pid, signal.SIGCONT)
    assert kit.terminate(first) == 0, kit.output.read_text()
    assert written(out) == list(range(ROWS))

    # The partition's owner goes on, even if the first worker had taken the folder from the second.
    rows(2 * ROWS)
    kit.settings["offset.storage.file.filename"] = str(tmp_path / "offsets")
    kit.finish(source)
    kit.wait_until(lambda: len(written(out)) >= 2 * ROWS, second)
    assert kit.terminate(second) == 0, kit.output.read_text()
    assert written(out) == list(range(2 * ROWS))
    assert [path.name for path in out.iterdir()] == [topic]
