"""Until when a lease is held: seconds of a session of 10 s, begun at 100."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.metadata.zookeeper.session.lease import SAFE_PART, TOLD_WITHIN, Lease

TIMEOUT = 10.0
BEGUN = 100.0


def lease(*renewals: float) -> Lease:
    made = Lease(7, BEGUN, TIMEOUT)
    for sent_at in renewals:
        made.renew(sent_at)
    return made


def test_a_new_session_is_held_for_its_timeout_but_a_margin() -> None:
    assert lease().is_held(BEGUN)
    assert lease().is_held(109.4)
    assert not lease().is_held(109.6)


def test_it_counts_from_the_last_request_that_the_leader_must_have_been_told_of() -> None:
    assert lease(101).until == 109.5, "nothing was sent a quarter of a timeout before but the beginning"
    assert lease(101, 103, 105).until == 101 + 9.5, "103 may not have been told yet"
    assert lease(101, 103, 105, 106).until == 103 + 9.5


def test_a_process_that_was_stopped_sees_it_gone_at_once() -> None:
    renewed = lease(101, 103, 105)
    assert renewed.is_held(105)
    assert not renewed.is_held(105 + 10)


def test_after_a_pause_one_answer_is_not_enough() -> None:
    """Leases stay lost after a pause until a second response: the write got through, but nobody knows whether
    the leader had heard of the session meanwhile.
    """
    renewed = lease(101, 103, 105, 114)
    assert not renewed.is_held(115)
    renewed.renew(116.5)
    assert renewed.is_held(117)


def test_an_answer_that_comes_late_takes_nothing_back() -> None:
    renewed = lease(101, 103, 105, 107)
    until = renewed.until
    renewed.renew(102)
    assert renewed.until == until


def test_a_session_that_is_over_stays_so() -> None:
    over = lease(101)
    over.end()
    assert not over.is_held(101)
    over.renew(104)
    over.renew(107)
    assert not over.is_held(101)
    assert over.until == -math.inf
    assert not Lease().is_held(0)


@pytest.mark.parametrize("every", [0.01, 0.5, 10 / 6])
def test_renewed_it_is_held_for_half_a_timeout_at_any_time(every: float) -> None:
    renewed, now = lease(), BEGUN
    while now < BEGUN + 5 * TIMEOUT:
        assert renewed.until - now > TIMEOUT * 0.5, now
        now += every
        renewed.renew(now)
    assert len(renewed._sent) < 10


@given(st.lists(st.floats(min_value=0, max_value=15), max_size=30))
def test_it_never_outlives_the_session(pauses: list[float]) -> None:
    """Against a leader that learns as late as it can: of each request a quarter of a timeout after it, but
    not of the last ones when a link breaks.
    """
    renewed, sent = lease(), [BEGUN]
    for pause in pauses:
        sent.append(sent[-1] + pause)
        reached_at = max(each for each in sent if each <= sent[-1] - TIMEOUT * TOLD_WITHIN or each == BEGUN)
        if sent[-1] - sent[-2] > TIMEOUT:
            return
        renewed.renew(sent[-1])
        assert renewed.until <= reached_at + TIMEOUT * SAFE_PART
