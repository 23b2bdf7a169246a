"""The thread pool for blocking jobs changes its size while jobs run."""

from __future__ import annotations

import threading

from logd.broker.work.pool import JobPool


def test_a_larger_pool_takes_more_jobs_at_a_time_and_loses_none() -> None:
    pool = JobPool(1)
    everybody = threading.Barrier(4, timeout=30)
    alone = threading.Event()
    first = pool.submit(alone.wait, 30)
    behind = pool.submit(lambda: "behind")
    pool.resize(4)
    assert [job.result(30) for job in [pool.submit(everybody.wait) for _ in range(4)]]
    assert not behind.done()
    alone.set()
    assert first.result(30) and behind.result(30) == "behind"
    pool.shutdown()


def test_shutting_down_waits_for_jobs_of_before_the_change() -> None:
    pool = JobPool(1)
    alone = threading.Event()
    job = pool.submit(alone.wait, 30)
    pool.resize(2)
    threading.Timer(0.01, alone.set).start()
    pool.shutdown()
    assert job.done()
