"""What `cluster health` looks at. Each check says what it found, and what to do if that will not do.

A cluster is unhealthy where a check FAILED: something is not there that is to be. What is under way, or only
not where it is best, is a WARNING. What brokers do not tell us is UNKNOWN.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kafka_client import (
    Admin,
    ClusterDescription,
    LogDir,
    OngoingReassignment,
    TopicMetadata,
    TopicPartition,
)
from kafka_client.errors import MillstreamError
from millstream.commands.partition.status import MIN_ISR, Standing, standings
from millstream.terminal.output import Format, Row
from millstream.terminal.session import Session, described

T = TypeVar("T")

OK, WARNING, FAILED, UNKNOWN = "ok", "warning", "failed", "unknown"
TIMEOUT_MS = 5_000
"""How long one question is repeated."""
PATIENCE_SECONDS = 10.0
"""How long its answer is waited for: what does not come by then is part of what is wrong."""
SHOWN = 8
"""How many names a table's cell has; other forms have them all."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: a sentence, and the `names` of what it is about."""

    check: str
    status: str
    found: str
    names: Sequence[str] = ()
    remedy: str | None = None

    def row(self, form: Format) -> Row:
        """As it is shown."""
        if form not in (Format.TABLE, Format.PLAIN):
            return {
                "check": self.check,
                "status": self.status,
                "found": self.found,
                "names": list(self.names),
                "remedy": self.remedy,
            }
        shown = [*self.names[:SHOWN], *([f"{len(self.names) - SHOWN} more"] if self.names[SHOWN:] else [])]
        found = f"{self.found}: {', '.join(shown)}" if shown else self.found
        return {"check": self.check, "status": self.status, "found": found, "remedy": self.remedy}


async def check_cluster(session: Session) -> list[Finding]:
    """All checks. MillstreamError where no broker tells of the cluster and its topics."""
    admin = Admin(session.client, timeout_ms=TIMEOUT_MS)
    cluster = await admin.describe_cluster()
    alive = {broker.node_id for broker in cluster.brokers}
    topics = await admin.list_topics()
    folders, moves, configs = await asyncio.gather(
        asyncio.gather(*(_told(admin.describe_log_dirs([broker], ())) for broker in sorted(alive))),
        _told(admin.list_partition_reassignments()),
        _told(admin.describe_topics_configs(topics, keys=(MIN_ISR,))),
    )
    known = standings(
        topics,
        {} if isinstance(configs, MillstreamError) else configs,
        {} if isinstance(moves, MillstreamError) else moves,
        alive,
    )
    return [
        _brokers(alive, topics),
        _controller(cluster),
        _log_dirs(dict(zip(sorted(alive), folders, strict=True))),
        _offline(known),
        _under_min_isr(known, configs),
        _under_replicated(known),
        _reassignments(moves),
        _preferred(known),
    ]


async def _told(question: Awaitable[T]) -> T | MillstreamError:
    """The answer, or why there is none."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await question
    except MillstreamError as error:
        return error
    except TimeoutError:
        return MillstreamError(f"no answer within {PATIENCE_SECONDS:g} s")


def _brokers(alive: set[int], topics: Mapping[str, TopicMetadata]) -> Finding:
    """A broker that is to have replicas is one of the cluster's; of others nobody knows."""
    needed = {
        replica for topic in topics.values() for p in topic.partitions.values() for replica in p.replicas
    }
    missing = sorted(map(str, needed - alive), key=int)
    there = f"{len(alive)} there ({', '.join(map(str, sorted(alive)))})"
    if not missing:
        return Finding("brokers", OK, there)
    return Finding("brokers", FAILED, f"{there}, {len(missing)} missing", missing, "start those missing")


def _controller(cluster: ClusterDescription) -> Finding:
    if cluster.controller_id >= 0:
        return Finding("controller", OK, f"broker {cluster.controller_id}")
    remedy = "see whether ZooKeeper, or the quorum of controllers, can be reached by the brokers"
    return Finding("controller", FAILED, "there is none", remedy=remedy)


def _log_dirs(answers: Mapping[int, Mapping[int, Sequence[LogDir]] | MillstreamError]) -> Finding:
    well, failed, silent = 0, [], []
    for broker, answer in answers.items():
        if isinstance(answer, MillstreamError):
            silent.append(f"broker {broker} ({described(answer)})")
            continue
        broken = [folder for folder in answer[broker] if folder.error is not None]
        well += len(answer[broker]) - len(broken)
        failed += [f"broker {broker}: {each.path} ({each.error.code.name})" for each in broken if each.error]
    if failed:
        remedy = "mend the disk and start that broker again, or take the folder out of its log.dirs"
        return Finding("log-dirs", FAILED, f"{len(failed)} failed", [*failed, *silent], remedy)
    if silent:
        return Finding("log-dirs", UNKNOWN, "not told by", silent)
    return Finding("log-dirs", OK, f"{well} there")


def _offline(known: Sequence[Standing]) -> Finding:
    remedy = "start a broker that was in sync; what an unclean election would lose, see partition elect"
    return _of_partitions("offline-partitions", FAILED, known, lambda each: not each.is_led, remedy)


def _under_min_isr(known: Sequence[Standing], configs: object) -> Finding:
    if isinstance(configs, MillstreamError):
        return Finding("under-min-isr-partitions", UNKNOWN, described(configs))
    remedy = "producers with acks=all are refused: start the brokers of the other replicas"
    return _of_partitions(
        "under-min-isr-partitions", FAILED, known, lambda each: each.is_under_min_isr, remedy
    )


def _under_replicated(known: Sequence[Standing]) -> Finding:
    remedy = "start the brokers of the other replicas; if they are there, they lag, or a disk has failed"
    return _of_partitions(
        "under-replicated-partitions", FAILED, known, lambda each: each.is_under_replicated, remedy
    )


def _preferred(known: Sequence[Standing]) -> Finding:
    remedy = "millstream partition elect --all-topic-partitions"
    return _of_partitions(
        "preferred-leaders",
        WARNING,
        known,
        lambda each: each.is_led and not each.is_led_as_preferred,
        remedy,
        "led by others",
    )


def _of_partitions(
    check: str,
    status: str,
    known: Sequence[Standing],
    is_odd: Callable[[Standing], bool],
    remedy: str,
    what: str = "",
) -> Finding:
    odd = [str(each.tp) for each in known if is_odd(each)]
    found = f"{len(odd)} of {len(known)}{what and f' {what}'}"
    return Finding(check, status, found, odd, remedy) if odd else Finding(check, OK, found)


def _reassignments(moves: Mapping[TopicPartition, OngoingReassignment] | MillstreamError) -> Finding:
    if isinstance(moves, MillstreamError):
        return Finding("reassignments", UNKNOWN, described(moves))
    if not moves:
        return Finding("reassignments", OK, "none under way")
    remedy = "they end by themselves; millstream partition reassign --cancel stops them"
    return Finding(
        "reassignments", WARNING, f"{len(moves)} under way", [str(tp) for tp in sorted(moves)], remedy
    )
