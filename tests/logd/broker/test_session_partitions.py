"""Sessions read only partitions with news, and answer as if they had read all."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import KafkaError
from kafka_client.records import build_batch
from logd.broker.topics.topic import Topic
from tests.logd.broker.fetch_bench import LONG, Bench, Session, bench, running, turns
from tests.support.depth import deep

__all__ = ["bench"]

MANY = 1000
STEPS = 250
PRODUCER = 7


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of partitions that fetches look up, in order."""
    looked_up: list[int] = []
    find = Topic.readable

    def count(topic: Topic, index: int) -> Any:
        looked_up.append(index)
        return find(topic, index)

    monkeypatch.setattr(Topic, "readable", count)
    return looked_up


@deep
def test_a_poll_costs_what_is_active(bench: Bench, visits: list[int]) -> None:
    """Polls read only active partitions.

    Every attempt read all partitions of its session, twice for a long poll: 1-2 ms with 1,000.
    """
    bench.create("t", MANY)
    session, answers = Session(bench), list[Any]()
    session.fetch({("t", index): 0 for index in range(MANY)})
    session.fetch()
    partition = bench.partition("t", 500)
    visits.clear()
    assert session.partitions() == {}
    assert visits == [], "nothing has news"

    async def poll() -> None:
        bench.wait(session.request(max_wait_ms=LONG), answers)
        partition.append(build_batch([(1, b"k", b"v", ())]), 1)
        await turns()

    bench.runner.run(poll())
    assert len(answers) == 1
    assert visits == [500]
    session.partitions({("t", 500): 1})
    session.partitions()
    assert len(visits) <= 3


class Twins:
    """Two sessions with the same requests; the second looks at all its partitions each time."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self.bench = bench
        self.random = random.Random(seed)
        self.sessions = Session(bench), Session(bench)
        self.positions: dict[tuple[str, int], int] = {}
        self.open: dict[tuple[str, int], int] = {}
        self.members: set[tuple[str, int]] = set()
        self.answered = 0

    def where(self) -> tuple[str, int]:
        return self.random.choice("abc"), self.random.randrange(5)

    def step(self) -> None:
        """Change something about the topics."""
        actions: list[Callable[[], None]] = [self.append] * 8
        actions += [
            self.begin,
            self.end,
            self.end,
            self.delete_records,
            self.delete_topic,
            self.create,
            self.grow,
        ]
        try:
            self.random.choice(actions)()
        except KafkaError:
            pass  # no such topic just now

    def append(self) -> None:
        where = self.where()
        if where not in self.open:
            self.bench.append(*where, size=self.random.randrange(1, 500))

    def begin(self) -> None:
        where = self.where()
        if where not in self.open:
            self.open[where] = self.random.randrange(100)
            self.bench.partition(*where).append(self.transactional(self.open[where]), 1)

    def transactional(self, producer: int) -> bytes:
        record = (1, b"k", b"v" * 50, ())
        return build_batch(
            [record], producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
        )

    def end(self) -> None:
        if self.open:
            where, producer = self.open.popitem()
            self.bench.partition(*where).append_marker(producer, 0, self.random.random() < 0.5, 0, 1)

    def delete_records(self) -> None:
        partition = self.bench.partition(*self.where())
        partition.delete_records_before(self.random.randint(0, partition.high_watermark))

    def delete_topic(self) -> None:
        name = self.random.choice("abc")
        if self.random.random() < 0.3:
            self.bench.runner.run(self.bench.broker.delete_topic(self.bench.broker.catalog.find(name)))
            self.open = {where: producer for where, producer in self.open.items() if where[0] != name}

    def create(self) -> None:
        self.bench.create(self.random.choice("abc"), self.random.randint(1, 3))

    def grow(self) -> None:
        catalog = self.bench.broker.catalog
        topic = catalog.find(self.random.choice("abc"))
        self.bench.runner.run(catalog.grow(topic.name, min(5, len(topic.partitions) + 1)))

    def ask(self) -> None:
        """Fetch in both sessions and check equal responses: no topic changes between the two."""
        self.bench.runner.run(self.bench.broker.catalog.disk_work_ended())
        chance = self.random.random
        changed = {self.where(): 0 for _ in range(self.random.randrange(3))} if chance() < 0.3 else {}
        changed = {where: self.positions.get(where, 0) + (chance() < 0.1) for where in changed}
        forget = [where for where in sorted(self.members) if chance() < 0.05]
        self.members = (self.members - set(forget)) | set(changed)
        if not self.members or not self.sessions[0].epoch:
            changed, forget = {self.where(): 0, ("a", 0): 0, ("b", 1): 0}, []
            self.members = set(changed)
        for where in changed:
            if where in forget:
                forget.remove(where)
        changed = {
            **changed,
            **{where: self.positions[where] for where in sorted(self.members & self.positions.keys())},
        }
        self.positions = {}
        limits = {
            "max_bytes": self.random.choice([1, 300, 1000, 1 << 20]),
            "partition_bytes": self.random.choice([1, 200, 1 << 20]),
            "isolation_level": 1 if chance() < 0.8 else 0,
        }
        first, second = self.sessions
        if second.id:
            of_broker = second.of_broker
            for partition in of_broker.partitions.values():
                of_broker._look_at(partition)
        answers = [session.fetch(changed, forget, **limits) for session in self.sessions]
        assert summary(answers[0]) == summary(answers[1])
        assert first.id and second.id and first.epoch == second.epoch
        self.consume(answers[0])

    def consume(self, answer: Any) -> None:
        for topic, partitions in answer.topics:
            for fetched in partitions:
                if fetched.records:
                    self.answered += 1
                    if self.random.random() < 0.8:  # else it asks for the same again
                        self.positions[topic, fetched.partition] = fetched.high_watermark
                elif fetched.error_code == 1:
                    self.positions[topic, fetched.partition] = 0


def summary(answer: Any) -> list[tuple[Any, ...]]:
    """Return everything in the response, partition by partition, in order."""
    return [
        (topic, *fetched._replace(records=bytes(fetched.records)))
        for topic, partitions in answer.topics
        for fetched in partitions
    ]


@deep
@pytest.mark.parametrize("seed", range(5))
def test_the_answer_is_as_if_all_had_been_looked_at(tmp_path: Path, seed: int) -> None:
    """Responses are as if the session had read all its partitions.

    The steps move watermarks, end transactions, delete and create topics, and set limits that leave
    partitions out.
    """
    with running(tmp_path / "data") as bench:
        for name in "abc":
            bench.create(name, 2)
        twins = Twins(bench, seed)
        for _ in range(STEPS):
            for _ in range(twins.random.randrange(4)):
                twins.step()
            twins.ask()
        assert twins.answered > STEPS / 10
