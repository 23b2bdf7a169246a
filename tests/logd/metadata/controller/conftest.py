"""A controller driven by scripts: commands, each followed by `----`, what it decided, and an empty line.

    came 1 2@rack               brokers register, each with the next broker epoch, or with `epoch`
    gone 1                      their registrations are gone
    restarted 1                 one registers again before anybody saw it go
    shutdown 1                  it asks to be relieved
    fail 1 /d1 t-0              a log directory fails, and with it these replicas
    create t partitions=2 factor=2 assign=1,2;2,1 start=0 shift=0 KEY=VALUE
    grow t 4 assign=1,2;2,1
    delete t
    alter t KEY=VALUE
    isr 1 t-0 1,2               broker 1 wants this ISR; leader-epoch, partition-epoch, epoch, version and
                                epochs=2:5 (broker epochs) are the right ones unless they are said
    reassign t-0 3,4            `cancel` for none; `same-factor` forbids another number of replicas
    reassignments
    elect preferred t-0         or `unclean`, and `all`
    rebalance
    producer-ids 1
    stray 1 t-0 u-0=ID          logs that broker 1 has found; without an id `=empty` has no record
    lose-controller             nobody decides; `gone`, `came` and `restarted` are seen by no one
    take-over                   a new controller decides first
    show t                      states as they are

Every change comes as a line, and after them the answer. `REWRITE=1` in the environment writes what came out
into the scripts: read the difference before you believe it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.config.topic import TopicConfig
from logd.metadata.controller.alter_partition import NewIsr
from logd.metadata.controller.core import Controller
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.election import ElectionType
from logd.metadata.controller.placement import Start
from logd.metadata.controller.reassignment import list_reassignments
from logd.metadata.controller.stray import why_stray
from logd.metadata.controller.topics import NewTopic
from logd.metadata.image import BrokerImage, Change, ClusterImage, PartitionImage
from tests.support.scripts import check_script

Options = dict[str, str]


class Stage:
    """The cluster a script plays on; topic ids are the topic's number, broker epochs go up from 1."""

    def __init__(self) -> None:
        self.controller = Controller(ClusterImage(), epoch=1)
        self.is_led = True
        self._epoch = 0
        self._topics = 0
        self._restarted: dict[int, set[TopicPartition]] = {}

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def run(self, line: str) -> list[str]:
        command, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word and command != "stray")
        plain = [word for word in words if "=" not in word or command == "stray"]
        try:
            lines: list[str] = getattr(self, f"do_{command.replace('-', '_')}")(plain, options)
        except KafkaError as refused:
            return [str(refused)]
        return lines

    def carry_out(self, decision: Decision[Any], *answer: str) -> list[str]:
        lines = [described(change) for change in decision.changes]
        lines += [f"{tp} UNCLEAN" for tp in decision.unclean]
        self.controller.apply(decision)
        return [*lines, *answer] or ["nothing"]

    # Brokers

    def do_came(self, plain: list[str], options: Options) -> list[str]:
        arrived = [self._registration(word, options) for word in plain]
        return self._register_changes(arrived=arrived)

    def do_restarted(self, plain: list[str], options: Options) -> list[str]:
        return self.do_came(plain, options)

    def do_gone(self, plain: list[str], options: Options) -> list[str]:
        return self._register_changes(departed=list(map(int, plain)))

    def _registration(self, word: str, options: Options) -> BrokerImage:
        number, _, rack = word.partition("@")
        self._epoch += "epoch" not in options
        return BrokerImage(id=int(number), epoch=int(options.get("epoch", self._epoch)), rack=rack or None)

    def _register_changes(
        self, arrived: list[BrokerImage] | None = None, departed: list[int] | None = None
    ) -> list[str]:
        if self.is_led:
            return self.carry_out(
                self.controller.change_brokers(arrived=arrived or (), departed=departed or ())
            )
        for number in departed or ():
            self.image.apply({"type": "broker-gone", "id": number})
        for broker in arrived or ():
            self.image.apply(broker.as_change())
            self._restarted[broker.id] = set(self.image.holds(broker.id))
        return ["unseen"]

    def do_lose_controller(self, plain: list[str], options: Options) -> list[str]:
        self.is_led = False
        return ["nothing"]

    def do_take_over(self, plain: list[str], options: Options) -> list[str]:
        self.controller = Controller(
            ClusterImage.of(self.image.as_changes()), epoch=self.controller.epoch + 1
        )
        self.is_led = True
        restarted, self._restarted = self._restarted, {}
        return self.carry_out(self.controller.take_over(restarted))

    def do_shutdown(self, plain: list[str], options: Options) -> list[str]:
        broker = int(plain[0])
        decision = self.controller.shut_down(broker, self._epoch_of(broker, options))
        return self.carry_out(decision, *(f"{tp} remains" for tp in decision.answer))

    def do_fail(self, plain: list[str], options: Options) -> list[str]:
        broker, log_dir, *partitions = plain
        decision = self.controller.fail_log_dirs(
            int(broker),
            self._epoch_of(int(broker), options),
            log_dirs=[log_dir],
            partitions=list(map(tp_of, partitions)),
        )
        return self.carry_out(decision)

    def do_producer_ids(self, plain: list[str], options: Options) -> list[str]:
        broker = int(plain[0])
        decision = self.controller.allocate_producer_ids(broker, self._epoch_of(broker, options))
        block = decision.answer
        return self.carry_out(decision, f"broker {block.broker} gives {block.first} to {block.end - 1}")

    def do_stray(self, plain: list[str], options: Options) -> list[str]:
        broker = int(plain[0])
        lines = []
        for word in plain[1:]:
            name, _, detail = word.partition("=")
            topic_id = bytes([int(detail)]) * 16 if detail.isdecimal() else None
            reason = why_stray(self.image, broker, tp_of(name), topic_id, is_empty=detail == "empty")
            lines += [f"{name}: {reason}"] if reason else []
        return lines or ["nothing"]

    def _epoch_of(self, broker: int, options: Options) -> int:
        image = self.image.brokers.get(broker)
        return int(options.get("epoch", image.epoch if image else 0))

    # Topics

    def do_create(self, plain: list[str], options: Options) -> list[str]:
        start = Start(int(options.pop("start", "0")), int(options.pop("shift", "0")))
        new = NewTopic(
            name=plain[0],
            topic_id=bytes([self._topics + 1]) * 16,
            start=start,
            partitions=int(options.pop("partitions", "1")),
            replication_factor=int(options.pop("factor", "1")),
            assignments=_numbered(options.pop("assign", None)),
            configs=options,
        )
        decision = self.controller.create_topic(new)
        self._topics += 1
        return self.carry_out(decision)

    def do_grow(self, plain: list[str], options: Options) -> list[str]:
        name, partitions = plain
        assignments = _numbered(options.get("assign"))
        return self.carry_out(
            self.controller.grow_topic(
                name, int(partitions), None if assignments is None else list(assignments.values())
            )
        )

    def do_delete(self, plain: list[str], options: Options) -> list[str]:
        topic = self.image.topics.get(plain[0])
        return self.carry_out(self.controller.delete_topic(plain[0], topic.topic_id if topic else b""))

    def do_alter(self, plain: list[str], options: Options) -> list[str]:
        topic = self.image.topics[plain[0]]
        return self.carry_out(
            self.controller.alter_topic(topic.name, topic.topic_id, lambda before: {**before, **options})
        )

    def do_configure(self, plain: list[str], options: Options) -> list[str]:
        settings = type(self.controller.settings)(defaults=TopicConfig().overridden(options))
        return self.carry_out(self.controller.configure(settings))

    # Partitions

    def do_isr(self, plain: list[str], options: Options) -> list[str]:
        asker, tp, isr = int(plain[0]), tp_of(plain[1]), list(map(int, filter(None, plain[2].split(","))))
        state = self.image.partitions.get(tp)
        epochs = {broker: self._epoch_of(broker, {}) for broker in isr}
        for pair in filter(None, options.get("epochs", "").split(",")):
            broker, epoch = map(int, pair.split(":"))
            epochs[broker] = epoch
        new = NewIsr(
            tp=tp,
            leader_epoch=int(options.get("leader-epoch", state.leader_epoch if state else 0)),
            partition_epoch=int(options.get("partition-epoch", state.partition_epoch if state else 0)),
            isr=epochs,
            topic_id=bytes([int(options["id"])]) * 16 if "id" in options else None,
        )
        decision = self.controller.alter_partition(
            asker, self._epoch_of(asker, options), [new], version=int(options.get("version", "3"))
        )
        answer = decision.answer[0]
        return self.carry_out(decision, str(answer) if isinstance(answer, KafkaError) else f"{tp} altered")

    def do_reassign(self, plain: list[str], options: Options) -> list[str]:
        tp, target, *flags = plain
        replicas = None if target == "cancel" else list(map(int, filter(None, target.split(","))))
        decision = self.controller.alter_reassignments(
            {tp_of(tp): replicas}, allow_factor_change="same-factor" not in flags
        )
        return self.carry_out(decision, *_errors(decision.answer))

    def do_reassignments(self, plain: list[str], options: Options) -> list[str]:
        partitions = list(map(tp_of, plain)) or None
        listed = list_reassignments(self.image, partitions)
        return [f"{tp}: {state_text(state)}" for tp, state in listed.items()] or ["nothing"]

    def do_elect(self, plain: list[str], options: Options) -> list[str]:
        kind, *names = plain
        partitions = None if names == ["all"] else list(map(tp_of, names))
        decision = self.controller.elect_leaders(ElectionType[kind.upper()], partitions)
        return self.carry_out(decision, *_errors(decision.answer))

    def do_rebalance(self, plain: list[str], options: Options) -> list[str]:
        return self.carry_out(self.controller.rebalance_leaders())

    def do_show(self, plain: list[str], options: Options) -> list[str]:
        states = sorted(self.image.partitions.items())
        lines = [f"{tp}: {state_text(state)}" for tp, state in states if not plain or tp.topic in plain]
        return lines or ["nothing"]


def tp_of(name: str) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return TopicPartition(topic, int(index))


def described(change: Change) -> str:
    match change["type"]:
        case "partition":
            state = ClusterImage.of([change]).partitions.popitem()[1]
            return f"{change['topic']}-{change['partition']}: {state_text(state)}"
        case "topic":
            configs = "".join(f" {key}={value}" for key, value in change["configs"].items())
            return f"topic {change['name']}, {change['partitions']} partitions{configs}"
        case "broker":
            broker = ClusterImage.of([change]).brokers.popitem()[1]
            words = [f"broker {broker.id} epoch {broker.epoch}"]
            words += [f"rack {broker.rack}"] if broker.rack else []
            words += ["shutting down"] if broker.is_shutting_down else []
            words += [f"without {','.join(broker.offline_log_dirs)}"] if broker.offline_log_dirs else []
            return " ".join(words)
        case "broker-gone":
            return f"broker {change['id']} gone"
        case "replicas-offline":
            offline = [
                f"{topic}-{index}" for topic, indexes in change["partitions"].items() for index in indexes
            ]
            return f"broker {change['broker']} cannot serve {','.join(offline)}"
        case "topic-deleted":
            return f"topic {change['name']} deleted"
        case "producer-ids":
            return f"producer ids from {change['next']}"
    return str(change)


def state_text(state: PartitionImage) -> str:
    leader = state.leader if state.leader >= 0 else "none"
    words = [f"leader {leader} isr {_joined(state.isr)} replicas {_joined(state.replicas)}"]
    words += [f"adding {_joined(state.adding)}"] if state.adding else []
    words += [f"removing {_joined(state.removing)}"] if state.removing else []
    return " ".join([*words, f"(leader epoch {state.leader_epoch}, partition epoch {state.partition_epoch})"])


def _joined(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _numbered(assign: str | None) -> dict[int, list[int]] | None:
    if assign is None:
        return None
    parts = enumerate(assign.split(";"))
    return {index: list(map(int, filter(None, part.split(",")))) for index, part in parts}


def _errors(answer: dict[TopicPartition, KafkaError | None]) -> list[str]:
    return [str(error) for error in answer.values() if error is not None]


@pytest.fixture
def script_checker() -> Callable[[Path], None]:
    def check(path: Path) -> None:
        check_script(path, Stage().run)

    return check
