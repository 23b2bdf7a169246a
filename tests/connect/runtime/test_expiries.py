"""The timers of values that expire."""

from __future__ import annotations

import pytest

from connect.config.providers import ConfigData
from connect.runtime import expiries
from connect.runtime.expiries import CONNECTOR, Expiries
from tests.support.waiting import until


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(expiries, "TTL_MIN_MS", 0)
    return []


async def test_only_what_uses_a_value_that_expires_is_restarted(restarted: list[int]):
    """Timers fire in the order of their times, so the last one shows which of the others there were."""
    timers = Expiries("c", restarted.append)
    timers.note_values(0, {"config.action.reload": "none"}, 0)
    timers.note_values(1, {}, None)
    timers.note_values(2, {}, 0)
    timers.forget([2, 9])
    timers.note_values(3, {}, 0)
    timers.note_values(3, {}, 1)  # started again meanwhile, with another time
    timers.note_values(CONNECTOR, {"config.action.reload": "restart"}, 0)
    timers.note_values(4, {}, 2)
    timers.begin()
    timers.begin()
    await until(lambda: 4 in restarted)
    assert restarted == [CONNECTOR, 3, 4]


async def test_timers_begin_when_all_has_started(restarted: list[int]):
    timers, other = Expiries("c", restarted.append), Expiries("d", restarted.append)
    timers.note_values(CONNECTOR, {}, 0)
    other.note_values(0, {}, 1)
    other.begin()
    await until(lambda: restarted)
    assert restarted == [0]
    timers.begin()
    await until(lambda: CONNECTOR in restarted)


async def test_a_closed_connector_is_not_restarted(restarted: list[int]):
    closed, other = Expiries("c", restarted.append), Expiries("d", restarted.append)
    for number in (0, 1):
        closed.note_values(number, {}, 0)
        if not number:
            closed.begin()
    closed.close()
    closed.begin()
    other.note_values(1, {}, 1)
    other.begin()
    await until(lambda: restarted)
    assert restarted == [1]


def test_a_ttl_is_no_negative_number():
    with pytest.raises(ValueError, match="ttl=-1: must be 0 or more milliseconds"):
        ConfigData({}, -1)
