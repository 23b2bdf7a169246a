"""Every client works on while brokers are killed: the leader, the group's coordinator, the controller; and
while they are restarted one after the other.

Each writes with acks=all, and idempotently unless it cannot, and reads in a group. What was acknowledged is
there (once), the reader has seen it, and the group begins where it has committed. All are disturbed together:
their topics have the same leaders, and their groups the same coordinator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec

import pytest

from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.foreign import ForeignClient
from tests.faults.cluster.side_by_side import SideBySide
from tests.support import depth, java
from tests.support.other_languages import FETCH_SECONDS, NODE, go_program, node_modules

pytestmark = [depth.deep, pytest.mark.timeout(3 * FETCH_SECONDS + 900)]


def in_python(module: str, library: str) -> ForeignClient:
    """`module`: in `clients`."""
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    return ForeignClient(module, [sys.executable, "-m", f"tests.faults.cluster.clients.{module}"])


def in_java() -> ForeignClient:
    return ForeignClient("java", java.program("Failovers"))


def franz_go() -> ForeignClient:
    return ForeignClient("franz-go", [str(go_program("go-failovers", "go", "./failovers"))])


def sarama() -> ForeignClient:
    program = go_program("sarama-failovers", "sarama", "./failovers")
    return ForeignClient("sarama", [str(program)], is_idempotent=False, tells_commits=False)


def in_node() -> ForeignClient:
    modules = node_modules()
    return ForeignClient("kafkajs", ["node", str(NODE / "failovers.js")], {"NODE_PATH": str(modules)})


CLIENTS: Mapping[str, Callable[[], ForeignClient]] = {
    "confluent": partial(in_python, "confluent", "confluent_kafka"),
    "aiokafka": partial(in_python, "aio", "aiokafka"),
    "kafka-python": partial(in_python, "python", "kafka"),
    "java": in_java,
    "franz-go": franz_go,
    "sarama": sarama,
    "kafkajs": in_node,
}
MARKS = {"java": java.needs_javac}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, ensemble: Ensemble) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("clients"), f"{ensemble.connect_string}/clients") as cluster:
        yield cluster
        cluster.stop()
        cluster.assert_no_tracebacks()


@pytest.fixture(scope="module")
def failures(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cluster: Cluster
) -> Mapping[str, BaseException]:
    """Return why a client that tests use has failed, or why it is left out."""
    names = {name for item in request.session.items for name in _clients_of(item)}
    clients, missing = {}, dict[str, BaseException]()
    for name in sorted(names):
        try:
            clients[name] = CLIENTS[name]()
        except (Exception, pytest.skip.Exception) as error:
            missing[name] = error
    together = SideBySide(cluster, clients, tmp_path_factory.mktemp("programs"))
    together.work_through_failovers()
    return {**missing, **together.failures}


def _clients_of(item: pytest.Item) -> set[str]:
    is_here = isinstance(item, pytest.Function) and item.module.__name__ == __name__
    return {item.callspec.params["name"]} if is_here else set()


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in CLIENTS])
def test_failovers(failures: Mapping[str, BaseException], name: str) -> None:
    if name in failures:
        raise failures[name]
