"""Every setting of Kafka's workers has an effect here, or a reason why it has none."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from connect.config import unknown_keys
from connect.config.rest import RestConfig
from connect.distributed.config import DistributedConfig
from connect.runtime import WorkerConfig
from connect.runtime.client_settings import is_client_key
from connect.runtime.worker_keys import NOT_USED, tell_unused
from tests.support.java import needs_jar, run_program

GOLDEN = Path(__file__).parent / "kafka_worker_keys.txt"
"""The output of `ConnectWorkerKeys.java`. REWRITE=1 writes it again."""
PAGE = Path(__file__).parents[3] / "docs" / "connect-operation.md"
DECLARATIONS = {"distributed": [DistributedConfig, RestConfig], "standalone": [WorkerConfig, RestConfig]}


def kafkas(worker: str) -> dict[str, str]:
    lines = [line.split() for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    return {key: "" for of, key in lines if of == worker}


@pytest.mark.parametrize("worker", DECLARATIONS)
def test_each_key_is_known_or_has_a_reason(worker):
    declarations, raw = DECLARATIONS[worker], kafkas(worker)
    assert len(raw) > 50
    prefixes = [prefix for each in declarations for prefix in each.PREFIXES]
    unknown = {key for key in unknown_keys(declarations, raw, prefixes) if not is_client_key(key)}
    assert unknown == NOT_USED.keys() & raw.keys(), "a key that has an effect by now leaves NOT_USED"


def test_reasons_are_of_kafkas_keys_and_on_the_page():
    assert NOT_USED.keys() <= kafkas("distributed").keys() | kafkas("standalone").keys()
    rows = re.findall(r"^\| `([a-z.]+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {key: reason for key, reason in rows if key in NOT_USED} == NOT_USED


def test_a_key_without_effect_is_told_with_its_reason(caplog):
    tell_unused([WorkerConfig], WorkerConfig.parse({"metric.reporters": "x", "key.convertor": "json"}))
    assert [record.getMessage() for record in caplog.records] == [
        "metric.reporters has no effect here: metrics are read at the path `/metrics` of the REST interface",
        "key.convertor is not known and has no effect; key.converter?",
    ]


@needs_jar("connect-runtime")
def test_the_list_is_kafkas():
    printed = run_program("ConnectWorkerKeys")
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(printed, encoding="utf-8")
    assert GOLDEN.read_text(encoding="utf-8") == printed
