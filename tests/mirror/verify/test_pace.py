"""The rate of a verification."""

from __future__ import annotations

from mirror.verify.pace import Pace


async def test_readers_wait_until_their_bytes_are_within_the_rate() -> None:
    now, slept = [100.0], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(1000, clock=lambda: now[0], sleep=sleep)
    await pace.take(500)
    await pace.take(2000)
    now[0] += 10  # time that was not used is not saved up
    await pace.take(100)
    assert slept == [0.5, 2.0, 0.09999999999999432]
    await Pace(None, sleep=sleep).take(1 << 40)
    assert len(slept) == 3
