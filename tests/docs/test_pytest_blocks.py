"""Blocks with tests for Millstream's own fixtures, run by pytest as another project would."""

from __future__ import annotations

from importlib.util import find_spec
from shutil import which

import pytest

from tests.docs.pages import Block, all_blocks
from tests.support.depth import deep

pytest_plugins = ["pytester"]

CLUSTER = "millstream_cluster"

# The application that README's test is about.
APPLICATION = """
from collections import Counter

from millstream.testing import Broker


def run_my_application(bootstrap_servers):
    from confluent_kafka import Consumer, Producer

    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "counts", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    counts = Counter(message.key() for message in consumer.consume(2, timeout=60))
    consumer.close()
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for key, count in counts.items():
        producer.produce("counts", key=key, value=str(count))
    producer.flush()
"""


@deep
def test_they_pass(pytester: pytest.Pytester) -> None:
    blocks = [block for block in all_blocks("python") if block.is_for_pytest and CLUSTER not in block.text]
    assert len(blocks) >= 4
    run(pytester, blocks)


@deep
@pytest.mark.skipif(
    which("java") is None or find_spec("pyspark") is None,
    reason="ZooKeeper needs Java and PySpark's jars",
)
def test_those_with_clusters_pass(pytester: pytest.Pytester) -> None:
    blocks = [block for block in all_blocks("python") if block.is_for_pytest and CLUSTER in block.text]
    assert blocks
    run(pytester, blocks)


def run(pytester: pytest.Pytester, blocks: list[Block]) -> None:
    for number, block in enumerate(blocks):
        pytester.makepyfile(**{f"test_{block.page.stem.lower()}_{number}": f"{APPLICATION}\n\n{block.text}"})
    tests = sum(block.text.count("\ndef test_") + block.text.startswith("def test_") for block in blocks)
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=tests)
