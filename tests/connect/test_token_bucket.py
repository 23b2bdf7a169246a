"""Token buckets keep the average rate whatever batches pass, with a burst of one second at most."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.runtime.token_bucket import TokenBucket


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@given(
    st.floats(0.1, 10_000),
    st.lists(st.tuples(st.integers(1, 5_000), st.floats(0, 10)), min_size=1, max_size=50),
)
def test_no_more_passes_than_rate_burst_and_one_batch(rate, batches):
    clock = Clock()
    bucket = TokenBucket(clock)
    bucket.change(rate)
    began, passed = clock.now, 0
    for size, idle in batches:
        clock.now += bucket.delay()
        passed += size
        bucket.take(size)
        assert passed <= rate * (clock.now - began) + rate + size + 1e-6 * passed
        clock.now += idle


def test_a_busy_user_gets_the_rate():
    clock = Clock()
    bucket = TokenBucket(clock)
    bucket.change(100)
    for _ in range(50):
        clock.now += bucket.delay()
        bucket.take(30)
    assert clock.now - 100 == pytest.approx(49 * 0.3)


def test_an_idle_second_is_the_most_that_is_saved():
    clock = Clock()
    bucket = TokenBucket(clock)
    bucket.change(10)
    clock.now += 1000
    bucket.take(10)
    assert bucket.delay() == 0
    bucket.take(10)
    assert bucket.delay() == pytest.approx(1)


@pytest.mark.parametrize(("rate", "seconds"), [(1, 10), (1000, 0.1), (None, 0)])
def test_a_change_makes_no_debt_longer(rate, seconds):
    bucket = TokenBucket(Clock())
    bucket.change(10)
    bucket.take(100)
    assert bucket.delay() == pytest.approx(10)
    bucket.change(rate)
    assert bucket.delay() == pytest.approx(seconds)
