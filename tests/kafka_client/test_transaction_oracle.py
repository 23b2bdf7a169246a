"""Error codes have the same effect on a transaction here as in Apache Kafka's Java producer.

The golden file is the output of tests/java/TransactionErrors.java, run against a scripted broker that answers
every request of a transaction with every error code. With REWRITE=1 in the environment it is written again.
Intended differences are listed here.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from kafka_client import TransactionalProducer
from kafka_client.errors import (
    AbortableTransactionError,
    ErrorCode,
    FatalTransactionError,
    ProducerFenced,
    RetriableError,
    TransactionRebalanced,
)
from kafka_client.producer import transaction_answers as answers
from kafka_client.wire import ApiKey
from tests.kafka_client.erring_coordinator import ErringCoordinator
from tests.kafka_client.fake_broker import FakeBroker
from tests.kafka_client.fake_coordinator import coordinated
from tests.kafka_client.running import run
from tests.support import java
from tests.support.depth import ONE_IN

GOLDEN = Path(__file__).parent / "golden" / "transaction_errors.txt"
TABLES = {
    "FindCoordinator": answers.FIND,
    "FindGroupCoordinator": answers.FIND,
    "InitProducerId": answers.INIT,
    "AddPartitionsToTxn": answers.ADD_PARTITIONS,
    "AddOffsetsToTxn": answers.ADD_OFFSETS,
    "TxnOffsetCommit": answers.COMMIT_OFFSETS,
    "Produce": answers.PRODUCE,
    "EndTxn": answers.END,
}
UNBEGUN = "unbegun"
"""Java's initTransactions has failed and is to be called again: so may be our `start`, whatever it raised, or
a new producer of the same id begins."""
RACE = re.compile(
    r"^(\d InitProducerId (?:CLUSTER|TRANSACTIONAL_ID)_AUTHORIZATION_FAILED )fatal$", re.MULTILINE
)
"""Java's initTransactions raises before its sender has taken the failure back: an abort at once may still
find that it is fatal, as a busy machine shows."""
DIFFERENCES: dict[tuple[str, str, str], tuple[set[str], str]] = {
    ("FindCoordinator", UNBEGUN, "abortable"): (
        {"GROUP_AUTHORIZATION_FAILED", "TRANSACTION_ABORTABLE"},
        "asked by `start`: see UNBEGUN",
    ),
    ("InitProducerId", UNBEGUN, "abortable"): ({"TRANSACTION_ABORTABLE"}, "asked by `start`: see UNBEGUN"),
    ("InitProducerId", UNBEGUN, "fatal"): (
        {"CLUSTER_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"},
        "asked by `start`: see UNBEGUN",
    ),
    ("FindCoordinator", "fatal", "fenced"): (
        {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"},
        "no broker answers so; both are the producer's end, and the code says why",
    ),
    ("FindGroupCoordinator", "fatal", "fenced"): (
        {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"},
        "no broker answers so; both are the producer's end, and the code says why",
    ),
    ("AddPartitionsToTxn", "abortable", "fatal"): (
        {"UNSUPPORTED_VERSION"},
        "raised by us, too, where a broker has no version in common: the abort could not be sent either",
    ),
    ("Produce", "passed", "abortable"): (
        {"DUPLICATE_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID"},
        "a duplicate is taken for written before the table is asked; a broker that forgot the producer is "
        "asked again by Java only where its answer lacks the log's start, and an abort mends it",
    ),
}
"""(Request, outcome in Java, outcome here) → the error codes, and the reason for the difference."""
ONLY_IN_1 = {"AddPartitionsToTxn", "AddOffsetsToTxn"}
OF_ANY_VERSION = {"FindCoordinator", "FindGroupCoordinator"}
"""Requests without regard to the transaction version, sent before it is known."""
ASKED = {(1, name) for name in TABLES.keys() - OF_ANY_VERSION} | {
    (2, name) for name in TABLES.keys() - ONLY_IN_1
}
Outcomes = dict[tuple[int, str], dict[str, str]]
"""By transaction version and request: the outcome of each code's name."""


def outcomes() -> Outcomes:
    """Return Kafka's outcomes, from the golden file."""
    table: Outcomes = defaultdict(dict)
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        version, request, code, outcome = line.split()
        table[int(version), request][code] = outcome
    return table


def ours(request: str, code: ErrorCode) -> str:
    """Return the outcome by our tables."""
    error = TABLES[request].error(code, "x")
    match error:
        case RetriableError():
            return "passed"
        case ProducerFenced():
            return "fenced"
        case TransactionRebalanced():
            return "rebalanced"
        case AbortableTransactionError():
            return "abortable"
        case FatalTransactionError():
            return "fatal"
        case _:
            raise AssertionError(f"{request}, {code.name}: {error!r} does not say what to do")


@pytest.mark.parametrize(("version", "request_name"), sorted(ASKED))
def test_tables_are_kafkas_but_for_what_is_said(version: int, request_name: str) -> None:
    differences: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for code, outcome in outcomes()[version, request_name].items():
        if ours(request_name, ErrorCode[code]) != outcome:
            differences[request_name, outcome, ours(request_name, ErrorCode[code])].add(code)
    assert differences == {key: codes for key, (codes, _) in DIFFERENCES.items() if key[0] == request_name}


def test_every_code_of_every_request_is_there() -> None:
    every = {code.name for code in ErrorCode} - {"NONE"}
    by_version = {
        1: TABLES.keys() - {"FindCoordinator", "FindGroupCoordinator"},
        2: TABLES.keys() - ONLY_IN_1,
    }
    requested = {(version, request) for version, requests in by_version.items() for request in requests}
    tables = outcomes()
    assert tables.keys() == requested
    assert all(codes.keys() == every for codes in tables.values())


async def test_a_duplicate_is_no_failure() -> None:
    """Produce treats a duplicate as success before its table is consulted, as DIFFERENCES says."""
    async with coordinated(2) as (coordinator, client), TransactionalProducer(client, "id") as producer:
        coordinator.refuse(ApiKey.PRODUCE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
        producer.begin()
        await producer.send("t", 0, [(0, None, b"v", ())])
        await producer.commit()


@java.needs_javac
def test_kafka_does_so_still() -> None:
    async def ask() -> str:
        async with FakeBroker() as one, FakeBroker() as two:
            ErringCoordinator(one, version=1)
            ErringCoordinator(two, version=2)
            process = await asyncio.create_subprocess_exec(
                *java.program("TransactionErrors", one.bootstrap, two.bootstrap, str(ONE_IN)),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            printed, _ = await process.communicate()
            assert process.returncode == 0
            return printed.decode()

    printed = RACE.sub(rf"\1{UNBEGUN}", run(ask()))
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(printed, encoding="utf-8")
    assert printed.splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()[::ONE_IN]
