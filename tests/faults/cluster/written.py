"""A cluster that is written to all the time: librdkafka's idempotent producer and our own, a topic each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests.faults.cluster.audit import assert_kept
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.writers import ConfluentWriter, OwnWriter, Writer
from tests.support.hosts import Hosts
from tests.support.network import Network
from tests.support.waiting import wait_for

RECORDS_BETWEEN = 100
CLIENTS = "clients"
"""Name of the clients as an end of a network."""


@contextmanager
def written(
    folder: Path,
    zookeeper: str,
    count: int = 3,
    *,
    network: Network | Hosts | None = None,
    of_one: Mapping[int, Mapping[str, object]] | None = None,
    **settings: object,
) -> Iterator[tuple[Cluster, list[Writer]]]:
    """Run a cluster with two topics and a producer on each; audit everything in the end.

    On `Hosts` the producers are on the one called `CLIENTS`.
    """
    cluster = Cluster(folder, zookeeper, count, network=network, of_one=of_one, **settings)
    with cluster, ExitStack() as stack:
        topics = [cluster.create_topic(name) for name in ("confluent", "own")]
        kinds: tuple[type[Writer], ...] = (ConfluentWriter, OwnWriter)
        writers = [kind(cluster.bootstrap, topic) for kind, topic in zip(kinds, topics, strict=True)]
        for writer in writers:
            if isinstance(network, Hosts):
                network.within(CLIENTS, partial(stack.enter_context, writer))
            else:
                stack.enter_context(writer)
        go_on(writers)
        yield cluster, writers
        go_on(writers)
        count = assert_kept(cluster, *writers)
        print(f"{count} records")


def go_on(writers: list[Writer]) -> None:
    for writer in writers:
        writer.goes_on(RECORDS_BETWEEN)


def in_sync(cluster: Cluster, writers: list[Writer]) -> None:
    for writer in writers:
        wait_for(lambda topic=writer.topic: cluster.is_in_sync(topic))  # type: ignore[misc]
