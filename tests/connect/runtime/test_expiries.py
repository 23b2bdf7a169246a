"""The timers of values that expire."""

from __future__ import annotations

import pytest

from connect.config.providers import ConfigData
from connect.runtime import expiries
from connect.runtime.expiries import CONNECTOR, Expiries
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def _no_shortest_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiries, "TTL_MIN_MS", 0)


async def test_only_what_uses_a_value_that_expires_is_restarted(caplog: pytest.LogCaptureFixture):
    """Timers end in the order of their times, so the last one shows which of the others there were."""
    caplog.set_level("INFO")
    expired: list[int] = []
    timers = Expiries("c", lambda: expired.extend(timers.take_due()))
    timers.note_values(0, {"config.action.reload": "none"}, 0)
    timers.note_values(1, {}, None)
    timers.note_values(2, {}, 0)
    timers.forget([2, 9])
    timers.note_values(3, {}, 0)
    timers.note_values(3, {}, 1)  # started again meanwhile, with another time
    timers.note_values(CONNECTOR, {"config.action.reload": "restart"}, 0)
    timers.note_values(4, {}, 2)
    await until(lambda: 4 in expired)
    assert expired == [CONNECTOR, 3, 4]
    assert [m for m in caplog.messages if "restarted" in m] == [
        "c: the connector is restarted, as a value has expired",
        "c: task 3 is restarted, as a value has expired",
        "c: task 4 is restarted, as a value has expired",
    ]


async def test_a_part_that_stops_before_its_restart_is_not_restarted():
    wakes: list[None] = []
    timers = Expiries("c", lambda: wakes.append(None))
    for number in range(3):
        timers.note_values(number, {}, 0)
    await until(lambda: len(wakes) == 3)
    timers.forget([1])
    assert timers.take_due() == [0, 2]
    assert timers.take_due() == []


async def test_a_closed_connector_is_not_restarted():
    expired: list[str] = []
    closed, other = Expiries("c", lambda: expired.append("c")), Expiries("d", lambda: expired.append("d"))
    closed.note_values(0, {}, 0)
    closed.close()
    other.note_values(1, {}, 1)
    await until(lambda: expired)
    assert expired == ["d"]
    other.close()
    assert other.take_due() == []


async def test_a_value_that_is_never_valid_restarts_at_most_once_a_second(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.undo()
    caplog.set_level("INFO")
    timers = Expiries("c", lambda: None)
    timers.note_values(CONNECTOR, {}, 0)
    timers.close()
    assert caplog.messages == ["c: a value of the config of the connector expires in 1.0 s"]


def test_a_ttl_is_no_negative_number():
    with pytest.raises(ValueError, match="ttl=-1: must be 0 or more milliseconds"):
        ConfigData({}, -1)
