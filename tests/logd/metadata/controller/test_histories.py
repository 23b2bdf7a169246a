"""Histories of a cluster: whatever happens to brokers, topics and partitions, what must hold does.

Brokers register, restart, shut down, lose log directories and go, seen by a controller or by none; leaders
alter ISRs by epochs that are right, stale or another's; topics and reassignments come and go. Held after each
step:

    - a leader is in the ISR and online; the ISR is within the replicas and never empty;
    - a partition has a leader where somebody in the ISR can lead, and every state is settled: to look at all
      partitions would change nothing that was not changed by looking at those concerned;
    - epochs grow: the partition's by one with each change, the leader's with each leader and each removal;
    - no one comes into an ISR but by the leader's word, or an unclean election that was allowed and is said;
    - brokers that restarted are in no ISR in which somebody else is online;
    - a reassignment ends in exactly its target;
    - indexes are what the partitions say, and snapshots and changes sent to brokers lead to the same image.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.metadata.broker_index import BrokerIndex
from logd.metadata.controller.alter_partition import NewIsr
from logd.metadata.controller.core import Controller
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.election import ElectionType
from logd.metadata.controller.liveness import Liveness
from logd.metadata.controller.partition_changes import PartitionChangeBuilder
from logd.metadata.controller.placement import Start
from logd.metadata.controller.reassignment import list_reassignments
from logd.metadata.controller.topics import NewTopic
from logd.metadata.feed.inbox import Inbox
from logd.metadata.feed.outbox import Outbox
from logd.metadata.image import NO_LEADER, BrokerImage, Change, ClusterImage, PartitionImage
from tests.support import depth

T = TypeVar("T")

BROKERS = st.integers(1, 5)
TOPICS = st.sampled_from(("a", "b", "c"))
UNCLEAN = "unclean.leader.election.enable"
OF_THE_MOMENT = ("broker", "broker-gone", "replicas-offline")
"""Changes that a shared store does not keep."""


class Histories(RuleBasedStateMachine):
    """A machine of random histories. ``registered`` are the brokers that are alive; ``broker_image`` is a
    broker's image of what is published.
    """

    def __init__(self) -> None:
        super().__init__()
        self.controller = Controller(ClusterImage(), epoch=1)
        self.broker_image = ClusterImage()
        self.inbox = Inbox(self.broker_image)
        self.inbox.registered(1)
        self._publish_snapshot()
        self.registered: dict[int, BrokerImage] = {}
        self.targets: dict[TopicPartition, tuple[int, ...]] = {}
        self.epoch = 0
        self.topics = 0
        self.next_producer_id = 0

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    @property
    def live(self) -> Liveness:
        return Liveness(self.image)

    # Events

    @initialize(factor=st.integers(1, 4), unclean=st.booleans())
    def begin(self, factor: int, unclean: bool) -> None:
        self.come({1, 2, 3, 4, 5})
        self.create_topic("a", 4, factor, 0, unclean)

    @rule(brokers=st.sets(BROKERS, min_size=1, max_size=2))
    def come(self, brokers: set[int]) -> None:
        """Register brokers, whether or not they are registered already."""
        arrived = [self._register(number) for number in sorted(brokers)]
        before = dict(self.image.partitions)
        self._carry_out(self.controller.change_brokers(arrived=arrived))
        self._check_behind(brokers, before)

    @rule(brokers=st.sets(BROKERS, min_size=1, max_size=2))
    def go(self, brokers: set[int]) -> None:
        for number in brokers:
            self.registered.pop(number, None)
        self._carry_out(self.controller.change_brokers(departed=sorted(brokers)))

    @rule(departed=st.sets(BROKERS, max_size=3), restarted=st.sets(BROKERS, max_size=3))
    def see(self, departed: set[int], restarted: set[int]) -> None:
        """Let the controller see in one list of the registered brokers which ones have gone and restarted."""
        for number in departed:
            self.registered.pop(number, None)
        for number in restarted:
            self._register(number)
        before = dict(self.image.partitions)
        self._carry_out(self.controller.see_brokers(list(self.registered.values())))
        assert set(self.image.brokers) == set(self.registered)
        self._check_behind(restarted, before)

    @rule(departed=st.sets(BROKERS, max_size=4), restarted=st.sets(BROKERS, max_size=4))
    def lose_controller(self, departed: set[int], restarted: set[int]) -> None:
        """Brokers go and restart before the next one has begun."""
        for number in departed:
            self.registered.pop(number, None)
        for number in restarted:
            self._register(number)
        before = dict(self.image.partitions)
        self._take_over(restarted)
        self._check_behind(restarted, before)

    @rule(
        arrived=st.sets(BROKERS, max_size=2),
        departed=st.sets(BROKERS, max_size=2),
        left=st.integers(0, 5),
    )
    def break_off(self, arrived: set[int], departed: set[int], left: int) -> None:
        """Lose a controller in the middle of a write. Its store also keeps what was written about brokers."""
        for number in departed:
            self.registered.pop(number, None)
        before = dict(self.image.partitions)
        news = [self._register(number) for number in sorted(arrived)]
        changes = self.controller.change_brokers(arrived=news, departed=sorted(departed)).changes
        for change in changes[: max(0, len(changes) - left)]:
            self.image.apply(change)
        epochs = {number: broker.epoch for number, broker in self.image.brokers.items()}
        self._take_over({n for n, broker in self.registered.items() if broker.epoch != epochs.get(n)})
        self._check_behind(arrived, before)

    def _take_over(self, restarted: set[int]) -> None:
        """Let a new controller take over. It knows what is stored and which brokers are registered."""
        stored = (change for change in self.image.as_changes() if change["type"] not in OF_THE_MOMENT)
        registered = (broker.as_change() for broker in self.registered.values())
        image = ClusterImage.of([*stored, *registered])
        before = self.controller
        self.controller = Controller(image, epoch=before.epoch + 1, settings=before.settings)
        self._publish_snapshot()
        self._carry_out(self.controller.take_over({number: image.holds(number) for number in restarted}))

    @rule(number=BROKERS, stale=st.booleans())
    def shut_down(self, number: int, stale: bool) -> None:
        decision = self._request(number, stale, lambda epoch: self.controller.shut_down(number, epoch))
        if decision is None:
            return
        self._carry_out(decision)
        for tp in self.image.holds(number):
            state = self.image.partitions[tp]
            others = [replica for replica in state.isr if replica != number]
            if state.leader == number:
                assert not any(self.live.can_lead(tp, replica) for replica in others)
            elif number in state.isr:
                assert not any(self.live.is_online(tp, replica) for replica in others)
        led = {tp for tp in self.image.leads(number) if len(self.image.partitions[tp].replicas) > 1}
        assert led == set(decision.answer)

    @rule(number=BROKERS, stale=st.booleans(), data=st.data())
    def fail_log_dir(self, number: int, stale: bool, data: st.DataObject) -> None:
        partitions = data.draw(
            st.sets(st.sampled_from(sorted(self.image.partitions) or [TopicPartition("x", 0)]))
        )
        decision = self._request(
            number,
            stale,
            lambda epoch: self.controller.fail_log_dirs(
                number, epoch, log_dirs=[f"/d{len(partitions)}"], partitions=partitions
            ),
        )
        if decision is not None:
            self._carry_out(decision)
            assert all(not self.live.is_online(tp, number) for tp in partitions & self.image.holds(number))

    @rule(number=BROKERS, stale=st.booleans())
    def allocate_producer_ids(self, number: int, stale: bool) -> None:
        decision = self._request(
            number, stale, lambda epoch: self.controller.allocate_producer_ids(number, epoch)
        )
        if decision is not None:
            block = self._carry_out(decision)
            assert block.first == self.next_producer_id
            self.next_producer_id = block.end

    @rule(
        name=TOPICS,
        partitions=st.integers(1, 4),
        factor=st.integers(1, 4),
        start=st.integers(0, 9),
        unclean=st.booleans(),
    )
    def create_topic(self, name: str, partitions: int, factor: int, start: int, unclean: bool) -> None:
        new = NewTopic(
            name=name,
            topic_id=bytes([self.topics // 256, self.topics % 256]) * 8,
            start=Start(start, start // 2),
            partitions=partitions,
            replication_factor=factor,
            configs={UNCLEAN: "true"} if unclean else {},
        )
        exists = name in self.image.topics
        if exists or factor > len(self.image.brokers):
            with pytest.raises(KafkaError) as refused:
                self.controller.create_topic(new)
            assert refused.value.code == (
                ErrorCode.TOPIC_ALREADY_EXISTS if exists else ErrorCode.INVALID_REPLICATION_FACTOR
            )
            return
        decision = self.controller.create_topic(new)
        self.topics += 1
        self._carry_out(decision)

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data(), more=st.integers(1, 2))
    def grow_topic(self, data: st.DataObject, more: int) -> None:
        topic = self.image.topics[data.draw(st.sampled_from(sorted(self.image.topics)))]
        factor = len(self.image.partitions[TopicPartition(topic.name, 0)].target)
        if factor > len(self.image.brokers):
            with pytest.raises(KafkaError, match="larger than"):
                self.controller.grow_topic(topic.name, topic.partitions + more)
            return
        self._carry_out(self.controller.grow_topic(topic.name, topic.partitions + more))
        assert self.image.topics[topic.name].partitions == topic.partitions + more

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data(), really=st.sampled_from((False, False, True)))
    def delete_topic(self, data: st.DataObject, really: bool) -> None:
        if not really:
            return
        topic = self.image.topics[data.draw(st.sampled_from(sorted(self.image.topics)))]
        self._carry_out(self.controller.delete_topic(topic.name, topic.topic_id))
        self.targets = {tp: target for tp, target in self.targets.items() if tp.topic != topic.name}

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data(), unclean=st.booleans())
    def alter_topic(self, data: st.DataObject, unclean: bool) -> None:
        topic = self.image.topics[data.draw(st.sampled_from(sorted(self.image.topics)))]
        self._carry_out(
            self.controller.alter_topic(
                topic.name, topic.topic_id, lambda before: {**before, UNCLEAN: str(unclean).lower()}
            )
        )

    @precondition(lambda self: self.image.partitions)
    @rule(
        data=st.data(),
        leader_epoch=st.sampled_from((0, 0, 0, -1, 1)),
        partition_epoch=st.sampled_from((0, 0, 0, -1, 1)),
        asker=st.sampled_from(("leader", "leader", "leader", "another")),
        stale=st.sampled_from((False, False, False, True)),
    )
    def alter_partition(
        self, data: st.DataObject, leader_epoch: int, partition_epoch: int, asker: str, stale: bool
    ) -> None:
        """By right epochs (0), those before and those to come; by the leader or another broker."""
        tp = self._draw_partition(data)
        state = self.image.partitions[tp]
        isr = data.draw(st.permutations(state.replicas))[: data.draw(st.integers(1, len(state.replicas)))]
        number = state.leader if asker == "leader" else data.draw(BROKERS)
        new = NewIsr(
            tp=tp,
            leader_epoch=state.leader_epoch + leader_epoch,
            partition_epoch=state.partition_epoch + partition_epoch,
            isr={replica: self._epoch_of(replica) - stale for replica in isr},
        )
        decision = self._request(
            number, False, lambda epoch: self.controller.alter_partition(number, epoch, [new])
        )
        if decision is None:
            return
        (answer,) = decision.answer
        code = answer.code if isinstance(answer, KafkaError) else None
        expected = self._expected(state, new, number, stale)
        assert code in (expected, ErrorCode.NEW_LEADER_ELECTED) if expected is None else code == expected
        self._carry_out(decision, reported=isr)
        after = self.image.partitions[tp]
        assert (code == ErrorCode.NEW_LEADER_ELECTED) == (after.leader != number and expected is None)
        if code is None:
            assert answer == after
            assert set(after.isr) == {replica for replica in isr if replica in after.replicas}

    def _expected(self, state: PartitionImage, new: NewIsr, number: int, stale: bool) -> ErrorCode | None:
        if new.leader_epoch > state.leader_epoch or new.partition_epoch > state.partition_epoch:
            return ErrorCode.NOT_CONTROLLER
        if new.leader_epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if number != state.leader or number not in new.isr:
            return ErrorCode.INVALID_REQUEST
        if set(new.isr) == set(state.isr):
            return None
        if new.partition_epoch < state.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        joining = set(new.isr) - set(state.isr)
        if stale or not all(self.live.can_lead(new.tp, replica) for replica in joining):
            return ErrorCode.INELIGIBLE_REPLICA
        return None

    @precondition(lambda self: self.image.partitions)
    @rule(data=st.data(), count=st.integers(0, 5))
    def catch_up(self, data: st.DataObject, count: int) -> None:
        """Leaders find that some of their partitions' followers are in sync, as many as can be."""
        partitions = sorted(self.image.partitions)
        for tp in data.draw(st.permutations(partitions))[:count] if count < 5 else partitions:
            state = self.image.partitions[tp]
            fit = [replica for replica in state.replicas if self.live.can_lead(tp, replica)]
            isr = {replica: self._epoch_of(replica) for replica in (*state.isr, *fit)}
            if state.leader != NO_LEADER:
                new = NewIsr(
                    tp=tp, leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch, isr=isr
                )
                epoch = self._epoch_of(state.leader)
                self._carry_out(self.controller.alter_partition(state.leader, epoch, [new]), reported=isr)
                assert set(fit) & set(self.image.partitions[tp].replicas) <= set(
                    self.image.partitions[tp].isr
                )

    @precondition(lambda self: self.image.partitions)
    @rule(data=st.data(), new_replicas=st.lists(BROKERS, max_size=4) | st.permutations((1, 2, 3, 4, 5)))
    def reassign(self, data: st.DataObject, new_replicas: list[int]) -> None:
        tp = self._draw_partition(data)
        state = self.image.partitions[tp]
        new_replicas = new_replicas[:3] if data.draw(st.booleans()) else new_replicas
        decision = self.controller.alter_reassignments({tp: new_replicas})
        refused = decision.answer[tp]
        if refused is not None:
            assert refused.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert not decision.changes
            return
        assert set(new_replicas) <= set(self.image.brokers) | set(state.replicas)
        self.targets[tp] = tuple(new_replicas)
        self._carry_out(decision)

    @precondition(lambda self: self.image.partitions)
    @rule(data=st.data())
    def cancel_reassignment(self, data: st.DataObject) -> None:
        tp = self._draw_partition(data)
        state = self.image.partitions[tp]
        decision = self.controller.alter_reassignments({tp: None})
        refused = decision.answer[tp]
        if refused is not None:
            in_sync = set(state.origin) & set(state.isr)
            assert refused.code == (
                ErrorCode.INVALID_REPLICA_ASSIGNMENT
                if state.is_reassigning
                else ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            )
            assert not state.is_reassigning or not any(self.live.can_lead(tp, one) for one in in_sync)
            return
        self.targets[tp] = state.origin
        self._carry_out(decision)
        assert self.image.partitions[tp].replicas == state.origin

    @rule(kind=st.sampled_from(ElectionType), data=st.data(), everything=st.booleans())
    def elect_leaders(self, kind: ElectionType, data: st.DataObject, everything: bool) -> None:
        partitions = sorted(self.image.partitions)
        selected = (
            None
            if everything or not partitions
            else data.draw(st.sets(st.sampled_from(partitions), max_size=3))
        )
        decision = self.controller.elect_leaders(kind, selected)
        self._carry_out(decision, may_be_unclean=kind is ElectionType.UNCLEAN)
        for tp, refused in decision.answer.items():
            state = self.image.partitions[tp]
            if kind is ElectionType.PREFERRED and not state.is_reassigning:
                is_led = state.leader == state.replicas[0]
                assert is_led == (refused is None or refused.code == ErrorCode.ELECTION_NOT_NEEDED)
            if kind is ElectionType.UNCLEAN:
                is_led = state.leader != NO_LEADER
                assert is_led == (refused is None or refused.code == ErrorCode.ELECTION_NOT_NEEDED)

    @rule()
    def rebalance_leaders(self) -> None:
        decision = self.controller.rebalance_leaders()
        self._carry_out(decision)
        for tp in decision.answer:
            assert self.image.partitions[tp].leader == self.image.partitions[tp].replicas[0]
        assert not self.controller.rebalance_leaders().changes

    # Carrying out

    def _publish_snapshot(self) -> None:
        self.outbox = Outbox(1, self.controller.epoch, 1, self.image.as_changes)
        self._deliver()

    def _deliver(self) -> list[Change]:
        """Apply at the broker, through JSON, the updates that it gets. Return the changes applied."""
        applied = []
        while (update := self.outbox.next()) is not None:
            received = replace(update, changes=json.loads(json.dumps(update.changes)))
            applied += self.inbox.take(received)
            self.outbox.delivered(update.number)
        for change in applied:
            self.broker_image.apply(change)
        return applied

    def _register(self, number: int) -> BrokerImage:
        self.epoch += 2  # so that the number before is nobody's
        self.registered[number] = BrokerImage(id=number, epoch=self.epoch, rack="ab"[number % 2])
        return self.registered[number]

    def _epoch_of(self, number: int) -> int:
        broker = self.image.brokers.get(number)
        return broker.epoch if broker else 1

    def _request(self, number: int, stale: bool, ask: Any) -> Any:
        """Return the decision on a broker's request, or None if the broker's epoch is stale. Checks the
        refusal.
        """
        epoch = self._epoch_of(number) - stale
        if not stale and number in self.image.brokers:
            return ask(epoch)
        with pytest.raises(KafkaError) as refused:
            ask(epoch)
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH
        return None

    def _draw_partition(self, data: st.DataObject) -> TopicPartition:
        return data.draw(st.sampled_from(sorted(self.image.partitions)))

    def _carry_out(
        self, decision: Decision[T], *, reported: Iterable[int] = (), may_be_unclean: bool = False
    ) -> T:
        """Apply the decision here and, as JSON, at the broker. ``reported`` are the replicas that a leader
        reports as in sync.
        """
        before = dict(self.image.partitions)
        answer = self.controller.apply(decision)
        self.outbox.add(decision.changes)
        assert self._deliver() == json.loads(json.dumps(decision.changes))
        changed = [change for change in decision.changes if change["type"] == "partition"]
        tps = [TopicPartition(change["topic"], change["partition"]) for change in changed]
        assert len(set(tps)) == len(tps)
        for tp in tps:
            after = self.image.partitions[tp]
            if tp in before:
                self._check_step(tp, before[tp], after, set(reported), tp in decision.unclean)
            else:
                assert (after.leader_epoch, after.partition_epoch) == (0, 0)
        for tp in decision.unclean:
            assert may_be_unclean or self.controller.unclean_allowed(tp.topic)
            assert self.image.partitions[tp].leader not in before[tp].isr
        self._check_targets(before)
        return answer

    def _check_step(
        self,
        tp: TopicPartition,
        before: PartitionImage,
        after: PartitionImage,
        reported: set[int],
        is_unclean: bool,
    ) -> None:
        assert after.partition_epoch == before.partition_epoch + 1
        removed = set(before.replicas) - set(after.replicas)
        assert after.leader_epoch >= before.leader_epoch + (after.leader != before.leader or bool(removed))
        if not after.is_reassigning:
            caught_up = {*before.isr, *reported, *(after.isr if is_unclean else ())}
            assert set(after.replicas) - set(before.origin) <= caught_up
        if is_unclean:
            assert after.isr == (after.leader,)
        else:
            assert set(after.isr) <= set(before.isr) | reported
            assert after.leader in (NO_LEADER, before.leader) or after.leader in {*before.isr, *reported}

    def _check_targets(self, before: dict[TopicPartition, PartitionImage]) -> None:
        for tp, state in self.image.partitions.items():
            if tp in self.targets:
                assert state.target == self.targets[tp]
            elif tp in before:
                assert state.replicas == before[tp].replicas

    def _check_behind(self, restarted: Iterable[int], before: dict[TopicPartition, PartitionImage]) -> None:
        for number in restarted:
            for tp in self.image.holds(number):
                state = self.image.partitions[tp]
                assert number not in state.isr or state.isr == (number,)
                assert before[tp].leader != number or state.leader_epoch > before[tp].leader_epoch

    # Invariants

    @invariant()
    def states_hold_together(self) -> None:
        for tp, state in self.image.partitions.items():
            assert state.isr
            assert set(state.isr) <= set(state.replicas)
            assert len(set(state.isr)) == len(state.isr)
            assert len(set(state.replicas)) == len(state.replicas)
            assert set(state.adding) | set(state.removing) <= set(state.replicas)
            assert not set(state.adding) & set(state.removing)
            if state.leader == NO_LEADER:
                assert not any(self.live.can_lead(tp, replica) for replica in state.isr)
            else:
                assert state.leader in state.isr
                assert self.live.is_online(tp, state.leader)
                assert all(self.live.is_online(tp, replica) for replica in state.isr)

    @invariant()
    def every_state_is_settled(self) -> None:
        settling = PartitionChangeBuilder(self.image, self.live, self.controller.unclean_allowed)
        for tp, state in self.image.partitions.items():
            settling.settle(tp, state)
        assert settling.changes == []

    @invariant()
    def indexes_are_what_partitions_say(self) -> None:
        again = BrokerIndex()
        for tp, state in self.image.partitions.items():
            again.add(tp, state)
        index = self.image.broker_index
        for number in range(7):
            assert index.held_by(number) == again.held_by(number)
            assert index.led_by(number) == again.led_by(number)
            assert index.preferred_count(number) == again.preferred_count(number)
            assert index.not_led_as_preferred(number) == again.not_led_as_preferred(number)
        assert (index.brokers, index.preferred_brokers) == (again.brokers, again.preferred_brokers)
        assert (index.leaderless, index.reassigning) == (again.leaderless, again.reassigning)
        assert set(list_reassignments(self.image)) == again.reassigning

    @invariant()
    def images_are_alike(self) -> None:
        snapshot = ClusterImage.of(json.loads(json.dumps(self.image.as_changes())))
        for other in (self.broker_image, snapshot):
            assert other.topics == self.image.topics
            assert other.partitions == self.image.partitions
            assert other.brokers == self.image.brokers
            assert other.offline == self.image.offline
            assert other.next_producer_id == self.image.next_producer_id


Histories.TestCase.settings = settings(max_examples=depth.times(200), stateful_step_count=50)
TestHistories = Histories.TestCase
