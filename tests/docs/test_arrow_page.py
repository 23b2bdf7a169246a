"""docs/arrow.md: its programs are run against a broker, in the page's order."""

from __future__ import annotations

import pytest

from millstream.testing import Broker
from tests.docs.pages import ROOT, blocks

pytest.importorskip("pandas")


def test_its_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    flights = [f'{{"origin": "{origin}", "time_hour": "2013-01-01T05:00:00Z"}}' for origin in ("JFK", "EWR")]
    with Broker(in_process=True) as broker:
        broker.produce("flights", flights)
        names: dict[str, object] = {}
        for block in blocks(ROOT / "docs" / "arrow.md", "python"):
            text = block.text.replace("localhost:9092", broker.bootstrap_servers)
            exec(compile(text, block.place, "exec"), names)
    printed = capsys.readouterr().out
    assert "{'origin': 'EWR', 'time_hour'" in printed
    assert printed.endswith("2013-01-01 05:00:00+00:00\n")
