"""The report of a cluster, which a failed test prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kafka_client.topic_partition import TopicPartition
from millstream.testing.cluster_broker import ClusterBroker
from millstream.testing.errors import BrokerError
from millstream.testing.report import LOG_LINES, ends_told, requests_told
from millstream.testing.request import Request
from millstream.testing.view import View


class Answers(NamedTuple):
    """A broker's answers;

    `ends`: the first offset, high watermark and last stable offset of its partitions.
    """

    id: int
    view: View
    ends: dict[TopicPartition, tuple[int, int, int]]
    requests: list[Request]


def report(brokers: Sequence[ClusterBroker]) -> str:
    """Return the partitions, the last requests of all brokers, and each broker's last lines."""
    answers = list(_answers(brokers))
    requests = sorted(request for each in answers for request in each.requests)
    return "\n".join(
        [
            *_partitions(answers),
            "",
            *requests_told(requests),
            *(line for broker in brokers for line in _last_lines(broker)),
        ]
    )


def _answers(brokers: Iterable[ClusterBroker]) -> Iterator[Answers]:
    for broker in brokers:
        if not broker.is_up:
            continue
        try:
            view = broker.view()
            if view is not None:
                ends = {TopicPartition(topic, index): (*of,) for topic, index, *of in broker.ends()}
                yield Answers(broker.id, view, ends, broker.requests())
        except BrokerError:
            continue  # its last lines say why


def _partitions(answers: Sequence[Answers]) -> list[str]:
    if not answers:
        return ["no broker can be asked"]
    ends = {each.id: each.ends for each in answers}
    states = answers[0].view.states
    if not states:
        return ["no topics"]
    lines = ["partition: first offset to end at its leader (last stable offset where it is another)"]
    for tp, state in sorted(states.items()):
        bounds = ends.get(state.leader, {}).get(tp)
        lines.append(f"  {tp}: {ends_told(*bounds) if bounds else 'not bounds'}; {state}")
    return lines


def _last_lines(broker: ClusterBroker) -> list[str]:
    head = f"broker {broker.id} at {broker.bootstrap_servers}, {broker.state}:"
    return ["", head, *(f"  {line}" for line in broker.log.splitlines()[-LOG_LINES:])]
