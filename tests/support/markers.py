"""The end of a transaction in its partitions: markers follow behind the answer to EndTxn."""

from __future__ import annotations

from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for


def is_stable(client: RawClient, topic: str, *partitions: int) -> bool:
    """Return True if no transaction is open in these partitions, or in partition 0."""
    responses = [client.fetch(topic, partition=index, isolation_level=1) for index in partitions or (0,)]
    return all(each.last_stable_offset == each.high_watermark for each in responses)


def wait_for_markers(client: RawClient, topic: str, *partitions: int) -> None:
    """Until no transaction is open in these partitions (0 unless given)."""
    wait_for(lambda: is_stable(client, topic, *partitions))
