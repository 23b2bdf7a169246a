"""RetryPolicy and RowByRow: which tries follow at which times."""

from hypothesis import given
from hypothesis import strategies as st

from connect.errors import RetriableError
from connect.runtime.errors.retries import RetryPolicy
from connect.runtime.errors.row_by_row import RowByRow
from connect.runtime.errors.stages import Stage, StageError


def test_pauses_double_from_300_ms():
    policy = RetryPolicy(timeout_ms=-1, delay_max_ms=60_000)
    assert [policy.delay_seconds(n, 0) for n in range(1, 9)] == [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 19.2, 38.4]
    assert 0 <= policy.delay_seconds(9, 0) <= 60


def test_without_a_timeout_nothing_is_tried_again():
    assert RetryPolicy(timeout_ms=0).delay_seconds(1, 0) is None


@given(st.integers(1, 1 << 40), st.floats(0, 1e6), st.integers(1, 1 << 40), st.integers(-1, 1 << 40))
def test_no_pause_is_longer_than_the_longest_or_passes_the_timeout(attempts, elapsed, longest, timeout):
    delay = RetryPolicy(timeout_ms=timeout, delay_max_ms=longest).delay_seconds(attempts, elapsed)
    if delay is None:
        assert timeout >= 0 and elapsed * 1000 >= timeout
    else:
        assert 0 <= delay <= longest / 1000
        assert timeout < 0 or elapsed + delay <= timeout / 1000 + 1e-6 * max(1, elapsed)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def pass_over(rows, process, policy, *, stops_at_first=False):
    """Return the finished pass and the pauses it asked for, with a clock that they move."""
    clock, pauses, failures = Clock(), [], []
    work = RowByRow(rows, process, policy, failures.append, stops_at_first=stops_at_first, clock=clock)
    while (seconds := work.run()) is not None:
        pauses.append(seconds)
        clock.now += seconds
    return work, pauses, failures


def failing(errors):
    """Return a function that fails on a row with the errors it has, then takes it."""

    def process(row):
        if errors.get(row):
            raise StageError(Stage.TRANSFORMATION, "transform t", "T", errors[row].pop(0))
        return row * 10

    return process


def test_rows_are_tried_until_the_timeout_each_with_its_own():
    policy = RetryPolicy(timeout_ms=1000, delay_max_ms=10_000)
    errors = {1: [RetriableError("x")] * 2, 2: [RetriableError("y")] * 100, 3: [ValueError("z")]}
    work, pauses, failures = pass_over(range(5), failing(errors), policy)
    assert work.good == [(0, 0), (1, 10), (4, 40)]
    assert [(row, str(error)) for row, error in work.bad] == [
        (2, "transform t: y"),
        (3, "transform t: ValueError('z')"),
    ]
    assert [round(pause, 3) for pause in pauses] == [0.3, 0.6, 0.3, 0.6, 0.1]
    assert failures == [True, True, True, True, True, False, False]


def test_a_pass_that_stops_at_the_first_bad_row_looks_at_no_other():
    errors = {1: [ValueError("x")], 3: [ValueError("y")]}
    work, _, _ = pass_over(range(5), failing(errors), RetryPolicy(), stops_at_first=True)
    assert [row for row, _ in work.bad] == [1]
    assert work.good == [(0, 0)]
