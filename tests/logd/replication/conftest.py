"""Brokers with one partition, a controller and a clock, and the scripts that drive them.

A script is a text of commands, each followed by `----`, what came out, and an empty line; `#` begins a
comment:

    fetch 2
    ----
    2 asks 1 for offset 0: last fetched epoch -1, leader epoch 1
    1 answers a b, high watermark 0
    2 ends at 2

Nothing happens by itself: the controller decides, and a broker hears of it when it is `tell`-ed. `hw` is the
high watermark; records are shown as offset:value/leader epoch. `REWRITE=1` in the environment writes what
came out into the scripts: read the difference before you believe it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from logd.replication import Fetch, Follower, Leader, LeaderSettings, Proposal, Standby, Truncate
from tests.faults.replication.controller import NO_LEADER, ControllerModel
from tests.faults.replication.memory_log import Batch
from tests.faults.replication.node import ACKS_ALL, Fetched, Node, Produced
from tests.support.scripts import check_script, milliseconds

Options = dict[str, str]
LEASE_MS = 1 << 40
"""Leases and sessions end when the script says so."""
STEPS_MAX = 50
"""After which followers that do not come to rest never will."""


class Script:
    """Carries out commands and says what came out."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.out: list[str] = []
        self.nodes: dict[int, Node] = {}
        self.up: set[int] = set()
        self.settings = LeaderSettings(replica_lag_time_max_ms=10_000)
        self.controller = ControllerModel(())
        self.delayed: dict[str, Callable[[], None]] = {}

    def run(self, command: str) -> list[str]:
        name, *words = command.split()
        plain = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        self.out = []
        getattr(self, "do_" + name.replace("-", "_"))(plain, options)
        return self.out or ["(nothing)"]

    # The cluster

    def do_brokers(self, plain: list[str], options: Options) -> None:
        """`brokers 1 2 3 min=2 lag=10s`: all are replicas, the first leads, all of them know it."""
        self.settings.min_insync_replicas = int(options.get("min", 1))
        self.settings.replica_lag_time_max_ms = milliseconds(options.get("lag", "10s"))
        ids = [int(word) for word in plain]
        self.controller = ControllerModel(tuple(ids))
        self.nodes = {number: Node(id=number, settings=self.settings) for number in ids}
        self.controller._returned = lambda broker_id: None  # type: ignore[method-assign]
        for number in ids:
            self.register(number)
        del self.controller._returned
        self.tell(ids)

    def register(self, number: int) -> None:
        node = self.nodes[number]
        self.up.add(number)
        node.broker_epoch = self.controller.register(number)
        node.lease_ends_ms = LEASE_MS

    def do_elect(self, plain: list[str], options: Options) -> None:
        """`elect 2` or `elect 2 unclean`."""
        if not self.controller.elect(int(plain[0]), unclean="unclean" in plain):
            self.out.append("refused")
        self.show_controller()

    def do_reassign(self, plain: list[str], options: Options) -> None:
        replicas = tuple(int(word) for word in plain)
        for number in replicas:
            if number not in self.nodes:
                self.nodes[number] = Node(id=number, settings=self.settings)
                self.register(number)
        if not self.controller.reassign(replicas):
            self.out.append("refused")
        self.show_controller()

    def do_session_ends(self, plain: list[str], options: Options) -> None:
        """`session-ends 1`: end the broker's session at the controller. The broker does not know."""
        self.controller.session_ended(int(plain[0]))
        self.show_controller()

    def do_lease_ends(self, plain: list[str], options: Options) -> None:
        self.nodes[int(plain[0])].lease_ends_ms = self.now_ms

    def do_lease(self, plain: list[str], options: Options) -> None:
        """`lease 1`: renew the broker's lease."""
        self.nodes[int(plain[0])].lease_ends_ms = LEASE_MS
        self.nodes[int(plain[0])].settle(self.now_ms)

    def do_controller(self, plain: list[str], options: Options) -> None:
        self.show_controller()

    def show_controller(self) -> None:
        partition = self.controller.image.partition
        leader = "none" if partition.leader == NO_LEADER else partition.leader
        self.out.append(
            f"controller: leader {leader}, leader epoch {partition.leader_epoch}, "
            f"isr {_list(partition.isr)}, partition epoch {partition.partition_epoch}"
        )

    def do_tell(self, plain: list[str], options: Options) -> None:
        """`tell 1 2` or `tell all`: the image comes to these brokers."""
        self.tell(sorted(self.up) if plain == ["all"] else [int(word) for word in plain])

    def tell(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            node = self.nodes[number]
            role, isr = node.role, _isr_of(node)
            node.apply(self.controller.image, self.now_ms)
            if node.role is not role:
                self.out.append(f"{number} {_role(node)}")
            elif _isr_of(node) != isr:
                self.out.append(f"{number} knows isr {_list(_isr_of(node))}")

    # Faults

    def do_kill(self, plain: list[str], options: Options) -> None:
        """`kill 1`: its log is whole, of the rest only the checkpoint is left."""
        self.stop(int(plain[0]))

    def do_cut_power(self, plain: list[str], options: Options) -> None:
        """`cut-power 1 keeps=2`: the log ends at offset 2 then."""
        self.stop(int(plain[0]))
        self.nodes[int(plain[0])].log.lose_power(int(options["keeps"]))

    def stop(self, number: int) -> None:
        self.up.remove(number)
        self.nodes[number].die()

    def do_start(self, plain: list[str], options: Options) -> None:
        """`start 1`: register the broker again, with a new broker epoch."""
        self.register(int(plain[0]))
        self.show_controller()

    def do_checkpoint(self, plain: list[str], options: Options) -> None:
        for word in plain:
            self.nodes[int(word)].checkpoint()

    def do_delete(self, plain: list[str], options: Options) -> None:
        """`delete 1 before=3`: DeleteRecords at the leader."""
        self.nodes[int(plain[0])].log.delete_before(int(options["before"]))

    # Producers and consumers

    def do_produce(self, plain: list[str], options: Options) -> None:
        """`produce 1 a b acks=all`: one batch; acks are 1 unless said otherwise."""
        node, values = self.nodes[int(plain[0])], tuple(plain[1:])
        what = " ".join(values)

        def reply(answer: Produced) -> None:
            if answer.error_code:
                self.out.append(f"{node.id} refuses {what}: {_error(answer.error_code)}")
            else:
                self.out.append(f"{node.id} acknowledges {what} at {answer.base_offset}")

        acks = ACKS_ALL if options.get("acks") == "all" else 1
        end, count = node.log.log_end_offset, len(self.out)
        node.produce(Batch(0, 0, values), acks, self.now_ms, reply)
        if node.log.log_end_offset > end:
            self.out.insert(count, f"{node.id} appends {what}")

    def do_read(self, plain: list[str], options: Options) -> None:
        """`read 1 0`: show what a consumer reads from offset 0 on."""
        node = self.nodes[int(plain[0])]
        answer = node.read(int(plain[1]), int(options.get("last", -1)), node.leader_epoch)
        self.out.append(f"{node.id} {_answer(answer)}")

    # Followers

    def do_fetch(self, plain: list[str], options: Options) -> None:
        """`fetch 2`: its next step; `fetch 2 ask=x`, `fetch 2 answer=x`: the request or the answer is on its
        way until `deliver x`.
        """
        for word in plain:
            self.step(self.nodes[int(word)], options)

    def do_sync(self, plain: list[str], options: Options) -> None:
        """`sync 2 3`: let these followers take steps until nothing changes. Only truncations and
        acknowledgements are shown.
        """
        nodes = [self.nodes[int(word)] for word in plain]
        before, lines = [""], self.out
        for _ in range(STEPS_MAX):
            now = [f"{node.log.log_end_offset} {node.high_watermark}" for node in nodes]
            if now == before:
                return
            before = now
            for node in nodes:
                self.out = []
                self.step(node, {})
                lines += [line for line in self.out if "truncates" in line or "acknowledges" in line]
            self.out = lines
        raise AssertionError("they do not come to rest")

    def do_deliver(self, plain: list[str], options: Options) -> None:
        self.delayed.pop(plain[0])()

    def step(self, node: Node, options: Options) -> None:
        follower = node.role
        if not isinstance(follower, Follower):
            self.out.append(f"{node.id} follows nobody")
        elif isinstance(follower.next, Fetch):
            self.ask(node, follower, follower.next, options)
        elif isinstance(follower.next, Truncate):
            self.truncate(node, follower.next)
        elif follower.next is Standby.LEADER_OFFSETS:
            self.ask_offsets(node, follower)
        else:
            self.out.append(f"{node.id} waits for the image")

    def ask(self, node: Node, follower: Follower, request: Fetch, options: Options) -> None:
        leader, epoch = self.nodes[follower.leader], node.broker_epoch
        assert epoch is not None
        self.out.append(
            f"{node.id} asks {leader.id} for offset {request.offset}: "
            f"last fetched epoch {request.last_fetched_epoch}, leader epoch {request.leader_epoch}"
        )

        def serve() -> None:
            if leader.id not in self.up:
                self.out.append(f"{leader.id} is down")
                return
            answer = leader.serve(node.id, epoch, node.log.log_start_offset, request, self.now_ms)
            self.out.append(f"{leader.id} {_answer(answer)}")
            if "answer" in options:
                self.delayed[options["answer"]] = lambda: self.take(node, request, answer)
            else:
                self.take(node, request, answer)

        if "ask" in options:
            self.delayed[options["ask"]] = serve
        else:
            serve()

    def take(self, node: Node, request: Fetch, answer: Fetched) -> None:
        end, follower = node.log.log_end_offset, node.role
        node.take(request, answer, lambda batch: None)
        if node.log.log_end_offset != end:
            self.out.append(f"{node.id} ends at {node.log.log_end_offset}")
        if isinstance(follower, Follower) and isinstance(follower.next, Truncate):
            self.truncate(node, follower.next)

    def truncate(self, node: Node, order: Truncate) -> None:
        follower = node.role
        assert isinstance(follower, Follower)
        node.truncated_committed, end = False, node.log.log_end_offset
        node.truncate(order)
        how = f"drops all and begins at {order.offset}" if order.fully else f"truncates to {order.offset}"
        if order.offset == end:
            how = f"forgets the epoch begun at {end}"
        lost = ", which was committed" if node.truncated_committed else ""
        self.out.append(f"{node.id} {how}{lost}")

    def ask_offsets(self, node: Node, follower: Follower) -> None:
        log = self.nodes[follower.leader].log
        self.out.append(
            f"{node.id} hears that {follower.leader} has {log.log_start_offset} to {log.log_end_offset}"
        )
        follower.leader_offsets(log.log_start_offset, log.log_end_offset)
        if isinstance(follower.next, Truncate):
            self.truncate(node, follower.next)

    # The ISR

    def do_wait(self, plain: list[str], options: Options) -> None:
        self.now_ms += milliseconds(plain[0])
        for number in sorted(self.up):
            node = self.nodes[number]
            if isinstance(node.role, Leader):
                node.role.tick(self.now_ms)
                node.settle(self.now_ms)

    def do_propose(self, plain: list[str], options: Options) -> None:
        """`propose 1`: its proposal to the controller and the answer back; `propose 1 ask=x`, `propose 1
        answer=x` as in `fetch`.
        """
        node = self.nodes[int(plain[0])]
        leader, epoch = node.role, node.broker_epoch
        assert isinstance(leader, Leader)
        assert epoch is not None
        proposal = leader.take_proposal()
        if proposal is None:
            self.out.append(f"{node.id} has nothing to propose")
            return
        self.out.append(
            f"{node.id} proposes isr {_list(proposal.broker_ids)} "
            f"on partition epoch {proposal.partition_epoch}"
        )

        def decide() -> None:
            self.decide(node, leader, epoch, proposal, options)

        if "ask" in options:
            self.delayed[options["ask"]] = decide
        else:
            decide()

    def decide(self, node: Node, leader: Leader, epoch: int, proposal: Proposal, options: Options) -> None:
        altered = self.controller.alter_partition(node.id, epoch, proposal)
        if altered.error_code:
            self.out.append(f"controller refuses: {_error(altered.error_code)}")
        else:
            self.show_controller()

        def hear() -> None:
            node.answered(leader, proposal, altered, self.now_ms)

        if "answer" in options:
            self.delayed[options["answer"]] = hear
        else:
            hear()

    def do_unanswered(self, plain: list[str], options: Options) -> None:
        """`unanswered 1`: let the leader give up waiting for a response to its proposal."""
        leader = self.nodes[int(plain[0])].role
        assert isinstance(leader, Leader)
        proposal = leader._in_sync.proposal
        assert proposal is not None
        leader.unanswered(proposal)

    # What there is

    def do_show(self, plain: list[str], options: Options) -> None:
        """`show` or `show 1 2`: who they are, and their logs."""
        for number in [int(word) for word in plain] or sorted(self.nodes):
            node = self.nodes[number]
            epochs = " ".join(f"{epoch}@{start}" for epoch, start in node.log.epochs.entries)
            records = " ".join(f"{offset}:{value}/{epoch}" for offset, epoch, value in node.log.records())
            who = _role(node) if number in self.up else "is down"
            self.out.append(f"{number} {who}; hw {node.high_watermark}, epochs {epochs or '-'}")
            self.out.append(f"    {records or '-'}")

    def do_isr(self, plain: list[str], options: Options) -> None:
        """`isr 1`: show the leader's ISR, the maximal ISR that it waits for, and the high watermark."""
        for word in plain:
            leader = self.nodes[int(word)].role
            assert isinstance(leader, Leader)
            self.out.append(
                f"{word}: isr {_list(leader.isr)}, maximal {_list(sorted(leader.maximal_isr))}, "
                f"hw {leader.high_watermark}"
            )


def _isr_of(node: Node) -> tuple[int, ...]:
    return node.role.isr if isinstance(node.role, Leader) else ()


def _role(node: Node) -> str:
    if isinstance(node.role, Leader):
        return f"leads epoch {node.role.leader_epoch} from {node.role.epoch_start_offset}"
    if isinstance(node.role, Follower):
        return f"follows {node.role.leader} in epoch {node.role.leader_epoch}"
    return "has no leader"


def _answer(answer: Fetched) -> str:
    if answer.error_code:
        return f"answers {_error(answer.error_code)}"
    if answer.diverging is not None:
        return f"answers that it has epoch {answer.diverging[0]} up to {answer.diverging[1]}"
    values = [str(value) for batch in answer.batches for value in batch.values]
    return f"answers {' '.join(values) or 'nothing'}, high watermark {answer.high_watermark}"


def _error(code: int) -> str:
    return ErrorCode(code).name


def _list(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers)) or "-"


@pytest.fixture
def script_checker() -> Callable[[Path], None]:
    """Carries out a script, and compares or, with REWRITE=1, writes down."""
    return lambda path: check_script(path, Script().run)
