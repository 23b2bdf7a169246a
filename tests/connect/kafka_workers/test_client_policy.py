"""Kafka's ConnectorClientPolicyIntegrationTest against our worker: one worker per policy.

| Kafka's method | row of CASES |
|---|---|
| testCreateWithOverridesForNonePolicy | OverridesForNone |
| testCreateWithNotAllowedOverridesForPrincipalPolicy | NotAllowedOverridesForPrincipal |
| testCreateWithAllowedOverridesForPrincipalPolicy | AllowedOverridesForPrincipal |
| testCreateWithAllowedOverridesForAllPolicy | AllowedOverridesForAll |
| testCreateWithNoAllowedOverridesForNonePolicy | NoOverridesForNone |
| testCreateWithAllowedOverridesForDefaultPolicy | AllowedOverridesForDefault |

Kafka's tests look at the status alone; here the refusal names each setting, and nothing is created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.connect.kafka_workers.worker_script import WorkerScript

JAAS = "consumer.override.sasl.jaas.config"
RESET = "consumer.override.auto.offset.reset"
CLIENT = {"consumer.override.client.id": "test"}
CASES: dict[str, tuple[str | None, dict[str, str], list[str]]] = {
    "OverridesForNone": ("None", {JAAS: "sasl"}, [JAAS]),
    "NotAllowedOverridesForPrincipal": ("Principal", {JAAS: "sasl", RESET: "latest"}, [RESET]),
    "AllowedOverridesForPrincipal": (
        "Principal",
        {"consumer.override.security.protocol": "PLAINTEXT"},
        [],
    ),
    "AllowedOverridesForAll": ("All", CLIENT, []),
    "NoOverridesForNone": ("None", {}, []),
    "AllowedOverridesForDefault": (None, CLIENT, []),
}
"""The worker's policy, overrides in a connector's config, and those of them that are refused."""


@pytest.fixture(scope="module")
def worker_of(logd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., WorkerScript]]:
    """Yield what returns a worker with a policy; tests share it."""
    workers: dict[str | None, WorkerScript] = {}

    def of(policy: str | None) -> WorkerScript:
        if policy not in workers:
            settings = {} if policy is None else {"connector_client_config_override_policy": policy}
            folder: Path = tmp_path_factory.mktemp("worker")
            workers[policy] = WorkerScript(logd.bootstrap, folder, **settings).start()
        return workers[policy]

    yield of
    for worker in workers.values():
        worker.close()


@pytest.mark.parametrize(("policy", "overrides", "refused"), CASES.values(), ids=CASES)
def test_a_connector_with_overrides(worker_of, topic, policy, overrides, refused):
    worker, name = worker_of(policy), f"conn-{topic}"
    config = worker.sink(name, topic) | overrides
    if not refused:
        worker.put(name, config)
        worker.wait_running(name)
        return
    status, answer = worker.ask("PUT", f"/connectors/{name}/config", config)
    assert status == 400
    for key in overrides:
        assert (key.removeprefix("consumer.override.") in answer["message"]) is (key in refused)
    assert name not in worker.ask("GET", "/connectors")[1]
