"""The metrics of a worker's rebalances."""

import math

from connect.distributed.rebalance_metrics import RebalanceMetrics
from tests.support.documented_metrics import documented


def test_a_rebalance_lasts_from_the_first_request_until_the_assignment():
    now = [5.0]
    metrics = RebalanceMetrics(lambda: now[0])
    assert math.isnan(metrics.values(-1)["time-since-last-rebalance-ms"])
    metrics.begin()
    assert metrics.values(-1)["rebalancing"] == 1
    now[0] = 6.0
    metrics.begin()  # the group had to begin again
    now[0] = 7.0
    metrics.end()
    now[0] = 10.0
    values = metrics.values(3)
    assert values == {
        "epoch": 3,
        "completed-rebalances-total": 1,
        "rebalancing": 0,
        "rebalance-avg-time-ms": 2000,
        "rebalance-max-time-ms": 2000,
        "time-since-last-rebalance-ms": 3000,
    }
    names, tags = documented()["kafka.connect", "connect-worker-rebalance-metrics"]
    assert (set(values), set()) == (names, tags)
