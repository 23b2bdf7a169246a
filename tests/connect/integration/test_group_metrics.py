"""A worker of a group reports its rebalances, on a real broker."""

from __future__ import annotations

from connect.distributed import DistributedConfig, DistributedWorker
from kafka_client.http.client import HttpClient
from tests.support.documented_metrics import check_documented
from tests.support.waiting import until


async def test_rebalances_are_told(logd, topic):
    settings = {"bootstrap.servers": logd.bootstrap, "group.id": topic}
    for kind in ("config", "offset", "status"):
        settings |= {f"{kind}.storage.topic": f"{topic}-{kind}", f"{kind}.storage.replication.factor": "1"}
    url = "http://127.0.0.1:8083"
    config, client = DistributedConfig.parse(settings), HttpClient(timeout=10)
    async with DistributedWorker(config, url=url, worker_id="w", request=client.request) as worker:
        tell = worker.metrics.values
        await until(lambda: tell("connect-worker-rebalance-metrics")["completed-rebalances-total"] > 0)
        assert tell("connect-worker-rebalance-metrics")["rebalancing"] == 0
        assert worker.group.texts() == {"leader-name": url, "connect-protocol": "SESSIONED"}
        check_documented(worker.metrics, "connect-worker-rebalance-metrics", "connect-worker-rebalance-info")
