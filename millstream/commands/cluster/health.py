"""The checks of `cluster health`. Each check reports what it found, and a remedy if one is needed.

A cluster is unhealthy if a check FAILED: a broker, controller, log directory or replica is missing. Moves
under way, and leaders that are not the preferred ones, are a WARNING. A check without a response is UNKNOWN.
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
"""How long a request is retried."""
PATIENCE_SECONDS = 10.0
"""How long a check waits for a response; without one the check is UNKNOWN."""
SHOWN = 8
"""How many names a table's cell has at most; JSON and YAML have all."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: a sentence, and the `names` of the brokers, directories or partitions."""

    check: str
    status: str
    detail: str
    names: Sequence[str] = ()
    remedy: str | None = None

    def row(self, form: Format) -> Row:
        """Return the output row; in tables and plain text the names are part of the sentence."""
        if form not in (Format.TABLE, Format.PLAIN):
            return {
                "check": self.check,
                "status": self.status,
                "found": self.detail,
                "names": list(self.names),
                "remedy": self.remedy,
            }
        shown = [*self.names[:SHOWN], *([f"{len(self.names) - SHOWN} more"] if self.names[SHOWN:] else [])]
        detail = f"{self.detail}: {', '.join(shown)}" if shown else self.detail
        return {"check": self.check, "status": self.status, "found": detail, "remedy": self.remedy}


async def check_cluster(session: Session) -> list[Finding]:
    """Run all checks. Raises MillstreamError if no broker describes the cluster and its topics."""
    admin = Admin(session.client, timeout_ms=TIMEOUT_MS)
    cluster = await admin.describe_cluster()
    alive = {broker.node_id for broker in cluster.brokers}
    topics = await admin.list_topics()
    folders, moves, configs = await asyncio.gather(
        asyncio.gather(
            *(_answer_or_error(admin.describe_log_dirs([broker], ())) for broker in sorted(alive))
        ),
        _answer_or_error(admin.list_partition_reassignments()),
        _answer_or_error(admin.describe_topics_configs(topics, keys=(MIN_ISR,))),
    )
    partitions = standings(
        topics,
        {} if isinstance(configs, MillstreamError) else configs,
        {} if isinstance(moves, MillstreamError) else moves,
        alive,
    )
    return [
        _brokers(alive, topics),
        _controller(cluster),
        _log_dirs(dict(zip(sorted(alive), folders, strict=True))),
        _offline(partitions),
        _under_min_isr(partitions, configs),
        _under_replicated(partitions),
        _reassignments(moves),
        _preferred(partitions),
    ]


async def _answer_or_error(question: Awaitable[T]) -> T | MillstreamError:
    """Await `question`; return its answer, or the error if it fails or takes over PATIENCE_SECONDS."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await question
    except MillstreamError as error:
        return error
    except TimeoutError:
        return MillstreamError(f"no answer within {PATIENCE_SECONDS:g} s")


def _brokers(alive: set[int], topics: Mapping[str, TopicMetadata]) -> Finding:
    """Check that every broker with replicas is alive. Brokers without replicas are not missed."""
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


def _offline(partitions: Sequence[Standing]) -> Finding:
    remedy = "start a broker that was in sync; what an unclean election would lose, see partition elect"
    return _of_partitions("offline-partitions", FAILED, partitions, lambda each: not each.is_led, remedy)


def _under_min_isr(partitions: Sequence[Standing], configs: object) -> Finding:
    if isinstance(configs, MillstreamError):
        return Finding("under-min-isr-partitions", UNKNOWN, described(configs))
    remedy = "producers with acks=all are refused: start the brokers of the other replicas"
    return _of_partitions(
        "under-min-isr-partitions", FAILED, partitions, lambda each: each.is_under_min_isr, remedy
    )


def _under_replicated(partitions: Sequence[Standing]) -> Finding:
    remedy = "start the brokers of the other replicas; if they are there, they lag, or a disk has failed"
    return _of_partitions(
        "under-replicated-partitions", FAILED, partitions, lambda each: each.is_under_replicated, remedy
    )


def _preferred(partitions: Sequence[Standing]) -> Finding:
    remedy = "millstream partition elect --all-topic-partitions"
    return _of_partitions(
        "preferred-leaders",
        WARNING,
        partitions,
        lambda each: each.is_led and not each.is_led_as_preferred,
        remedy,
        "led by others",
    )


def _of_partitions(
    check: str,
    status: str,
    partitions: Sequence[Standing],
    is_odd: Callable[[Standing], bool],
    remedy: str,
    what: str = "",
) -> Finding:
    odd = [str(each.tp) for each in partitions if is_odd(each)]
    detail = f"{len(odd)} of {len(partitions)}{what and f' {what}'}"
    return Finding(check, status, detail, odd, remedy) if odd else Finding(check, OK, detail)


def _reassignments(moves: Mapping[TopicPartition, OngoingReassignment] | MillstreamError) -> Finding:
    if isinstance(moves, MillstreamError):
        return Finding("reassignments", UNKNOWN, described(moves))
    if not moves:
        return Finding("reassignments", OK, "none under way")
    remedy = "they end by themselves; millstream partition reassign --cancel stops them"
    return Finding(
        "reassignments", WARNING, f"{len(moves)} under way", [str(tp) for tp in sorted(moves)], remedy
    )
