"""The steps of a failover, as an operator takes them. docs/mirror.md has the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mirror.config import LinkSettings


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a failover, and the command that does it, if there is one."""

    text: str
    command: str = ""


def planned_failover(settings: LinkSettings, config: str, topics: Iterable[str]) -> list[Step]:
    """Return the steps while the source answers: nothing is lost.

    `config` is the path of the properties, `topics` are those of the source.
    """
    source, target = settings.source, settings.target
    only = f"--flow '{settings.name}'"
    names = sorted(topics)
    pairs = " ".join(f"--topic {topic}:{settings.remote_topic(topic)}" for topic in names)
    return [
        Step(f"Stop the producers of the flow's topics in {source.alias}."),
        Step(f"Wait until consumers in {source.alias} have read them to the end, and stop them."),
        Step(f"Stop the mirror of {settings.name} (SIGTERM)."),
        Step(
            "Copy what is left, and write the last checkpoints.",
            f"millstream mirror run {config} --clusters {target.alias} --until-caught-up",
        ),
        Step(
            "Prove the copies equal.",
            f"millstream mirror verify --source {source.bootstrap_servers} "
            f"--target {target.bootstrap_servers} {pairs}",
        )
        if names
        else Step(f"No topic of {source.alias} is copied: nothing is to be verified."),
        Step(
            "See that the plan is safe (exit status 0).", f"millstream mirror failover plan {config} {only}"
        ),
        *_move(settings, config),
    ]


def unplanned_failover(settings: LinkSettings, config: str) -> list[Step]:
    """Return the steps while the source does not answer: what was not copied is not in the target."""
    source = settings.source.alias
    return [
        Step(f"Make sure that no producer can reach {source}, and stop the mirror of {settings.name}."),
        *_move(settings, config),
        Step(
            f"When {source} answers again: see what was not copied, before anything is written there.",
            f"millstream mirror failover plan {config} --flow '{settings.name}'",
        ),
    ]


def _move(settings: LinkSettings, config: str) -> list[Step]:
    target = settings.target.alias
    example = settings.remote_topic("TOPIC")
    names = "TOPIC as before" if example == "TOPIC" else f"{example} and TOPIC, which new records go to"
    back = f"{target}->{settings.source.alias}"
    return [
        Step(
            f"Commit the groups' offsets in {target}.",
            f"millstream mirror failover offsets {config} --flow '{settings.name}' --execute",
        ),
        Step(f"Start the consumers in {target}. They read {names}."),
        Step(f"Start the producers in {target}."),
        Step(f"To go back later, fail over the flow {back} in the same way."),
    ]
