"""A coordinator partition with a clock and a log of its own, and the scripts that drive it.

A script is a text of commands, each followed by `----`, what came out, and an empty line; `#` begins a
comment:

    init a
    ----
    a: producer 1000 epoch 0

Producers are called by names; each uses the transactional id `x` unless the command says otherwise (`id=`),
and the identity it was last given. `v=` is the transaction version it speaks, 0 or 2. `REWRITE=1` in the
environment writes what came out into the scripts: read the difference before you believe it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.transactions import (
    ProducerIdentity,
    TransactionRecord,
    TransactionSettings,
    TransactionShard,
    TransactionState,
)
from tests.logd.transactions.listlog import ListLog
from tests.support.scripts import check_script, milliseconds

Options = dict[str, str]


class Script:
    """A script's commands, carried out against one shard; `out` is their output."""

    def __init__(self) -> None:
        self.log = ListLog()
        self.now_ms = 0
        self.shown = 0
        self.identities: dict[str, ProducerIdentity] = {}
        self.ids = itertools.count(1000)
        self.out: list[str] = []
        self.shard = self.loaded()

    def loaded(self, *, behind: bool = False) -> TransactionShard:
        shard = TransactionShard(0, self.log, TransactionSettings(), lambda: next(self.ids))
        for offset, (transactional_id, transaction) in self.log.read():
            if transaction is not None:
                transaction = dataclasses.replace(transaction, may_be_behind=behind)
            shard.load(TransactionRecord(transactional_id, transaction), offset)
        return shard

    def run(self, line: str) -> list[str]:
        self.out = []
        name, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        try:
            getattr(self, f"do_{name}")(plain, options)
        except KafkaError as error:
            self.out.append(f"{plain[0] if plain else name}: {error.code.name}")
        return self.out

    # Producers

    def do_init(self, plain: list[str], options: Options) -> None:
        """`init a`; `init a go-on` with the identity it has (KIP-360)."""
        expected = self.identities[plain[0]] if "go-on" in plain else None
        timeout_ms = milliseconds(options.get("timeout", "60s"))
        identity = self.shard.init_producer(options.get("id", "x"), timeout_ms, expected, self.now_ms)
        self.name_identity(plain[0], identity)

    def do_add(self, plain: list[str], options: Options) -> None:
        self.shard.add_partitions(
            options.get("id", "x"),
            self.identities[plain[0]],
            partitions(plain[1:]),
            client_version=int(options.get("v", "2")),
            now_ms=self.now_ms,
        )
        self.out.append(f"{plain[0]}: ok")

    def do_verify(self, plain: list[str], options: Options) -> None:
        codes = self.shard.verify_partitions(
            options.get("id", "x"), self.identities[plain[0]], partitions(plain[1:])
        )
        self.out += [f"{topic}-{index}: {code.name}" for (topic, index), code in codes.items()]

    def do_commit(self, plain: list[str], options: Options) -> None:
        self.end(plain[0], options, commit=True)

    def do_abort(self, plain: list[str], options: Options) -> None:
        self.end(plain[0], options, commit=False)

    def end(self, name: str, options: Options, *, commit: bool) -> None:
        version = int(options.get("v", "2"))
        after = self.shard.end(
            options.get("id", "x"),
            self.identities[name],
            commit=commit,
            client_version=version,
            now_ms=self.now_ms,
        )
        if options.get("answer") == "lost":
            self.out.append(f"{name}: ?")
        elif version >= 2:
            self.name_identity(name, after)
        else:
            self.out.append(f"{name}: ok")

    def name_identity(self, name: str, identity: ProducerIdentity) -> None:
        self.identities[name] = identity
        self.out.append(f"{name}: producer {identity.producer_id} epoch {identity.epoch}")

    def do_same(self, plain: list[str], options: Options) -> None:
        """`same b a`: b has the identity a has now."""
        self.identities[plain[0]] = self.identities[plain[1]]

    # The shell

    def do_mark(self, plain: list[str], options: Options) -> None:
        """Write the markers owed, all or the ones named, and complete what can be completed."""
        for transactional_id in self.shard.undone:
            owed = self.shard.owed(transactional_id)
            assert owed is not None
            transaction, left = owed
            outcome = "commit" if transaction.state is TransactionState.PREPARE_COMMIT else "abort"
            for where in left:
                if not plain or f"{where.topic}-{where.partition}" in plain:
                    self.shard.marker_written(transactional_id, where)
                    self.out.append(
                        f"{where.topic}-{where.partition}: {outcome} of producer {transaction.producer_id} "
                        f"epoch {transaction.producer_epoch}"
                    )
            self.shard.complete(transactional_id, self.now_ms)

    def do_restart(self, plain: list[str], options: Options) -> None:
        """`restart`; `restart unclean` after a stop that may have lost the log's last records."""
        self.shard = self.loaded(behind="unclean" in plain)
        self.out += [f"{transactional_id}: to be finished" for transactional_id in self.shard.undone]

    def do_wait(self, plain: list[str], options: Options) -> None:
        self.now_ms += milliseconds(plain[0])
        for transactional_id in self.shard.timed_out(self.now_ms):
            self.shard.abort_timed_out(transactional_id, self.now_ms)
            self.out.append(f"{transactional_id}: timed out")

    def do_expire(self, plain: list[str], options: Options) -> None:
        expired = self.shard.expired(self.now_ms)
        self.shard.forget(expired, self.now_ms)
        self.out += [f"{transactional_id}: forgotten" for transactional_id in expired]

    def do_fail(self, plain: list[str], options: Options) -> None:
        """`fail NOT_COORDINATOR`: let the next append fail with this error."""
        self.log.failure = ErrorCode[plain[0]]

    def do_leap(self, plain: list[str], options: Options) -> None:
        """`leap 32765 a`: set the epoch of x to this one, and give the producers named after it the new
        identity.
        """
        epoch = int(plain[0])
        last = [record for _, record in self.log.read() if record.transactional_id == "x"][-1]
        assert last.transaction is not None
        moved = dataclasses.replace(last.transaction, producer_epoch=epoch)
        self.log.append([TransactionRecord("x", moved)])
        self.shard = self.loaded()
        for name in plain[1:]:
            self.name_identity(name, moved.identity)

    # Telling

    def do_describe(self, plain: list[str], options: Options) -> None:
        described = self.shard.describe(plain[0] if plain else "x")
        where = " ".join(f"{topic}-{index}" for topic, index in described.partitions)
        self.out.append(
            f"{described.state.title} producer {described.producer_id} epoch {described.producer_epoch} "
            f"since {described.started_ms} [{where}]"
        )

    def do_list(self, plain: list[str], options: Options) -> None:
        self.out += [f"{listed.transactional_id} {listed.state.title}" for listed in self.shard.listed()]

    def do_log(self, plain: list[str], options: Options) -> None:
        """Show the records appended since the last `log`."""
        for _, (transactional_id, transaction) in list(self.log.read())[self.shown :]:
            if transaction is None:
                self.out.append(f"{transactional_id} gone")
                continue
            rotates = transaction.next_producer_id
            self.out.append(
                f"{transactional_id} {transaction.state.title} {transaction.producer_id}/"
                f"{transaction.producer_epoch}" + (f" then {rotates}" if rotates >= 0 else "")
            )
        self.shown = len(self.log.records)


def partitions(words: Sequence[str]) -> list[TopicPartition]:
    places = [word.rsplit("-", 1) for word in words]
    return [TopicPartition(topic, int(index)) for topic, index in places]


@pytest.fixture
def script_checker() -> Callable[[Path], None]:
    return lambda path: check_script(path, Script().run)
