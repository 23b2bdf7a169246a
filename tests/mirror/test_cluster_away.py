"""A cluster that is away: the source when the mirror starts, then the target in the middle of the copying.

What the mirror says, that it goes on by itself, and that nothing is doubled or left out.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.mirror import test_command
from tests.mirror.pair import Pair
from tests.mirror.test_command import LINE, filled, running, topics_of
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess, free_port
from tests.support.waiting import wait_for

pytestmark = deep

TOPIC = "flights"


def last_lag(output: str) -> str:
    *_, line = LINE.finditer(output)
    return line["lag"]


def test_the_source_at_the_start_and_the_target_in_the_middle(tmp_path: Path) -> None:
    dc1, dc2 = LogdProcess(tmp_path / "dc1"), LogdProcess(tmp_path / "dc2")
    dc1.port = free_port()
    with dc2:
        pair = Pair(dc1.bootstrap, dc2.bootstrap)
        with running(tmp_path, pair.properties(TOPIC)) as link:
            link.wait_for(lambda: "dc1->dc2 is down, again in 1 s: " in link.output)
            link.wait_for(lambda: "dc1->dc2: down: " in link.output)
            assert dc1.bootstrap in link.output, "who is away"
            assert "Traceback" not in link.output
            with dc1:
                filled(pair.dc1, TOPIC)
                link.wait_for(lambda: topics_of(pair.dc2).get(f"dc1.{TOPIC}") == 10)
                link.wait_for(lambda: "dc1->dc2: 10 records" in link.output)
                dc2.kill()
                filled(pair.dc1, TOPIC, count=200, start=10)
                link.wait_for(lambda: "lag 200 records" in link.output)
                dc2.start()
                link.wait_for(lambda: topics_of(pair.dc2).get(f"dc1.{TOPIC}") == 210)
                link.wait_for(lambda: last_lag(link.output) == "0")
                assert link.stop() == 0
                assert "Traceback" not in link.output
                compared = asyncio.run(pair.verify(TOPIC))
                assert (compared.equal, compared.records) == (True, 210)


def test_a_target_that_stays_away_is_not_waited_for_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = (
        "import mirror.link, mirror.source; mirror.link.STOP_SECONDS = 1; mirror.source.CLOSE_MS = 100; "
    )
    monkeypatch.setattr(test_command, "COMMAND", impatient + test_command.COMMAND)
    dc1, dc2 = LogdProcess(tmp_path / "dc1"), LogdProcess(tmp_path / "dc2")
    with dc1, dc2:
        pair = Pair(dc1.bootstrap, dc2.bootstrap)
        filled(pair.dc1, TOPIC)
        with running(tmp_path, pair.properties(TOPIC)) as link:
            link.wait_for(lambda: "dc1->dc2: 10 records" in link.output)
            dc2.kill()
            filled(pair.dc1, TOPIC, count=5, start=10)
            wait_for(lambda: "lag 5 records" in link.output, 60)
            assert link.stop() == 0, "the next start finds out what was not acked"
            assert "not everything was acked within 1 s" in link.output
            assert "Traceback" not in link.output
