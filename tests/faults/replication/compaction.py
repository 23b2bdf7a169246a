"""Replicas of a compacted partition that come and go: no deleted key may come back with any of them.

The cores are the real ones, driven by one thread that takes the next step at random. It produces or deletes
a key, or has a follower fetch (its answer comes some time later). It has a replica compact a part of its log,
kills or starts one, or elects another leader. Each replica compacts by itself, in rounds: a round looks at
the whole log, and then exchanges it part by part, while all else goes on. After every step each in-sync
replica has to have the keys of the committed history, with their values.

A transaction that nobody ends is the same: its records are a key's value, its marker deletes the key.

Deletions are removed by a later round than the one that saw them first, at random: as their time is counted
from there, and a marker waits for its records, they do not go in the order of their offsets.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from logd.replication import Fetch, Follower, Leader, LeaderSettings, Standby, Truncate
from logd.replication.progress import NEVER_MS
from tests.faults.replication.controller import ControllerModel
from tests.faults.replication.memory_log import Batch, MemoryLog
from tests.faults.replication.node import Fetched, Node, Rules

IDS = (1, 2, 3)
KEYS = "abcdefgh"
LAG_MS = 60
LEASE_MS = 1 << 40
STEPS = 600
CATCH_UP_STEPS = 4000

State = dict[str, int]
"""Offset of the value of each key that is not deleted."""


@dataclass
class Part:
    """The offsets that a round removes from [start, end)."""

    removed: set[int]
    removal_offset: int


@dataclass
class Round:
    """A log's compaction; it is given up where the log is another one."""

    log: MemoryLog
    parts: list[Part]


def state_of(records: Iterator[tuple[int, tuple[str, bool]]]) -> State:
    state: State = {}
    for offset, (key, is_value) in records:
        if is_value:
            state[key] = offset
        else:
            state.pop(key, None)
    return state


class CompactedLog(MemoryLog):
    """A log with one record per batch: (key, whether it has a value).

    `deletions` are those whose time runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.deletions: set[int] = set()
        self.cuts = 0

    def truncate(self, order: Truncate) -> None:
        self.cuts += 1
        super().truncate(order)

    def state(self, end: int) -> State:
        return state_of((offset, value) for offset, _, value in self.records() if offset < end)  # type: ignore[misc]


class World:
    """`wrong` is what was found; `step` goes on."""

    def __init__(self, seed: int, rules: Rules | None = None) -> None:
        self.rng = random.Random(seed)
        self.now_ms = 0
        self.keys = KEYS[: self.rng.choice((2, 4, 8))]
        self.compacting = set(IDS[: self.rng.choice((1, 2, 3))])
        """Who compacts: a replica's cleaner may have much else to do."""
        self.controller = ControllerModel(IDS)
        settings = LeaderSettings(replica_lag_time_max_ms=LAG_MS)
        self.nodes = {
            number: Node(id=number, settings=settings, rules=rules or Rules(), log=CompactedLog())
            for number in IDS
        }
        self.up: set[int] = set()
        self.written: dict[tuple[int, int], tuple[str, bool]] = {}
        """By offset and leader epoch."""
        self.committed: list[tuple[str, bool]] = []
        self.answers: list[tuple[Node, object, Fetch, Fetched]] = []
        self.rounds: dict[int, Round] = {}
        self.fetched_ms: dict[tuple[int, int], int] = {}
        self.wrong: list[str] = []
        self.anew = 0
        """How often a replica dropped its log because of what was removed."""
        for number in IDS:
            self._start(number)
        self._tell_all()

    # The course of things

    def run(self) -> list[str]:
        steps = {
            self._produce: (2, 6, 12),
            self._fetch: (8, 16),
            self._answer: (8, 16),
            self._begin_round: (3, 8),
            self._exchange: (4, 10),
            self._tell: (2, 4),
            self._tick: (3, 6),
            self._kill_or_start: (0.2, 0.7, 2),
            self._elect: (0.3, 1),
        }
        functions = list(steps)
        weights = [self.rng.choice(choices) for choices in steps.values()]
        for _ in range(STEPS):
            self.now_ms += self.rng.randrange(6)
            self.rng.choices(functions, weights)[0]()
            self._check()
            if self.wrong:
                return self.wrong
        self._catch_up()
        return self.wrong

    def _catch_up(self) -> None:
        """Start all replicas, and go on until they are in sync. Compaction continues meanwhile."""
        for number in set(IDS) - self.up:
            self._start(number)
        for _ in range(CATCH_UP_STEPS):
            self.now_ms += self.rng.randrange(6)
            self.rng.choice(
                (self._fetch, self._answer, self._tick, self._tell_all, self._begin_round, self._exchange)
            )()
            self._check()
            if self.wrong or set(self.controller.image.partition.isr) == set(IDS):
                return
        self.wrong.append(f"not in sync: {self.controller.image.partition}")

    def _check(self) -> None:
        partition = self.controller.image.partition
        leader = self.nodes.get(partition.leader)
        if leader is None or not isinstance(leader.role, Leader):
            return
        if leader.role.leader_epoch != partition.leader_epoch:
            return
        for offset in range(len(self.committed), leader.role.high_watermark):
            self.committed.append(self.written[offset, leader.log.epoch_of(offset)])
        end, committed_state = len(self.committed), state_of(enumerate(self.committed))
        for number in partition.isr:
            log = self.nodes[number].log
            assert isinstance(log, CompactedLog)
            if (state := log.state(end)) != committed_state:
                self.wrong.append(f"broker {number} has {state} before {end}, it is {committed_state}")

    # Clients

    def _produce(self) -> None:
        for node in self.nodes.values():
            if isinstance(node.role, Leader) and node.id in self.up:
                record = (self.rng.choice(self.keys), self.rng.random() < 0.6)
                self.written[node.log.log_end_offset, node.leader_epoch] = record
                node.produce(Batch(0, 0, (record,)), 1, self.now_ms, lambda answer: None)

    # Followers

    def _fetch(self) -> None:
        node = self.nodes[self.rng.choice(IDS)]
        follower = node.role
        if node.id not in self.up or not isinstance(follower, Follower):
            return
        if isinstance(follower.next, Truncate):
            self.anew += follower.next.misses_removals
            node.truncate(follower.next)
        leader = self.nodes[follower.leader]
        if leader.id not in self.up or node.broker_epoch is None:
            return
        if follower.next is Standby.LEADER_OFFSETS and isinstance(leader.role, Leader):
            follower.leader_offsets(leader.log.log_start_offset, leader.log.log_end_offset)
        if isinstance(request := follower.next, Fetch):
            self.fetched_ms[leader.id, node.id] = self.now_ms
            answer = leader.serve(node.id, node.broker_epoch, node.log.log_start_offset, request, self.now_ms)
            some = answer.batches[: self.rng.choice((1, 3, 20))]
            self.answers.append((node, follower, request, answer._replace(batches=some)))

    def _answer(self) -> None:
        if not self.answers:
            return
        node, follower, request, answer = self.answers.pop(self.rng.randrange(len(self.answers)))
        if node.role is follower:
            node.take(request, answer, lambda batch: None)

    # Compaction

    def _removable_to(self, node: Node) -> int:
        if not isinstance(node.role, Leader):
            return 1 << 60
        return node.role.removable_to(
            self.now_ms, lambda broker: self.fetched_ms.get((node.id, broker), NEVER_MS)
        )

    def _begin_round(self) -> None:
        node = self.nodes[self.rng.choice(IDS)]
        log, end = node.log, min(node.high_watermark, node.log.log_end_offset - 1)
        assert isinstance(log, CompactedLog)
        if node.id not in self.compacting & self.up or node.id in self.rounds or end <= 0:
            return
        bound, batches = self._removable_to(node), [batch for batch in log.batches if batch.end_offset <= end]
        last = {batch.values[0][0]: batch.base_offset for batch in batches}  # type: ignore[index]
        parts = []
        while batches:
            size = self.rng.randint(1, 8)
            parts.append(self._part(log, batches[:size], last, bound))
            batches = batches[size:]
        self.rounds[node.id] = Round(log, parts)

    def _part(self, log: CompactedLog, batches: list[Batch], last: dict[str, int], bound: int) -> Part:
        part = Part(set(), 0)
        for batch in batches:
            offset, (key, is_value) = batch.base_offset, batch.values[0]  # type: ignore[misc]
            if offset < last[key]:
                part.removed.add(offset)
            elif not is_value and offset in log.deletions and offset < bound and self.rng.random() < 0.7:
                part.removed.add(offset)
                part.removal_offset = offset + 1
            elif not is_value:
                log.deletions.add(offset)
        return part

    def _exchange(self) -> None:
        if not self.rounds:
            return
        number = self.rng.choice(sorted(self.rounds))
        node, work = self.nodes[number], self.rounds[number]
        if not work.parts or number not in self.up or node.log is not work.log:
            del self.rounds[number]
            return
        part = work.parts.pop(0)
        has_all = part.removed <= {batch.base_offset for batch in work.log.batches}
        is_late = part.removal_offset > self._removable_to(node)
        if not has_all or is_late or self._is_cut(work):
            del self.rounds[number]
            return
        log, role = work.log, node.role
        log.removal_offset = max(log.removal_offset, part.removal_offset)
        if isinstance(role, Leader):
            role.removed(part.removal_offset)
        log.batches = [batch for batch in log.batches if batch.base_offset not in part.removed]

    def _is_cut(self, work: Round) -> bool:
        """Return True if a truncation has ended the round."""
        log = work.log
        assert isinstance(log, CompactedLog)
        is_cut, log.cuts = log.cuts > 0, 0
        return is_cut

    # The cluster

    def _start(self, number: int) -> None:
        node = self.nodes[number]
        self.up.add(number)
        node.broker_epoch = self.controller.register(number)
        node.lease_ends_ms = LEASE_MS
        node.apply(self.controller.image, self.now_ms)

    def _kill_or_start(self) -> None:
        number = self.rng.choice(IDS)
        if number not in self.up:
            self._start(number)
        elif len(self.up) > 1:
            self.up.remove(number)
            self.rounds.pop(number, None)
            self.nodes[number].checkpoint()
            self.nodes[number].die()
            self.controller.session_ended(number)

    def _elect(self) -> None:
        self.controller.elect(self.rng.choice(self.controller.image.partition.isr))
        self._tell_all()

    def _tell(self) -> None:
        self.nodes[self.rng.choice(sorted(self.up))].apply(self.controller.image, self.now_ms)

    def _tell_all(self) -> None:
        for number in sorted(self.up):
            self.nodes[number].apply(self.controller.image, self.now_ms)

    def _tick(self) -> None:
        for number in sorted(self.up):
            node = self.nodes[number]
            if not isinstance(leader := node.role, Leader) or node.broker_epoch is None:
                continue
            leader.tick(self.now_ms)
            if (proposal := leader.take_proposal()) is not None:
                altered = self.controller.alter_partition(number, node.broker_epoch, proposal)
                node.answered(leader, proposal, altered, self.now_ms)
