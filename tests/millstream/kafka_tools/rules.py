"""What cannot be the same twice in the tools' output, each by a rule with a name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
USAGE = re.compile(r"^Option +Description *\n-+ +-+ *\n(?:.*\n?)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a transcript was played."""

    bootstrap: str
    data: Path


def address(text: str, where: Surroundings) -> str:
    """The broker's."""
    port = where.bootstrap.rpartition(":")[2]
    return re.sub(rf"(localhost|127\.0\.0\.1):{port}\b", "localhost:9092", text)


def log_folder(text: str, where: Surroundings) -> str:
    """The broker's log folder."""
    return text.replace(str(where.data), "/data")


def topic_id(text: str, where: Surroundings) -> str:
    """Ids of topics are random."""
    return re.sub(r"(TopicId: )[\w-]{22}(?=\t|$)", r"\1ID", text, flags=re.MULTILINE)


def member_id(text: str, where: Surroundings) -> str:
    """Ids of members are the client's id and something random, or (KIP-848) something random."""
    return re.sub(rf"{UUID}|(?<= )[\w+/-]{{22}}(?= +/)", "UUID", text)


def usage(text: str, where: Surroundings) -> str:
    """The table of options: tests compare which there are, not what is said of them."""
    return USAGE.sub("(usage)\n", text)


def parser_usage(text: str, where: Surroundings) -> str:
    """argparse4j's usage and help, and how it breaks the lines of an error behind them."""
    if not text.startswith("usage: "):
        return text
    _, *error = re.split(r"(?<=:)\s+(?=error:)", text, maxsplit=1)
    # Words are spread over the line, and broken behind hyphens.
    return "\n".join(["(usage)", *(" ".join(each.split()).replace("- ", "-") for each in error), ""])


def cluster_id(text: str, where: Surroundings) -> str:
    """Clusters' ids are random."""
    return re.sub(r"^(Cluster ID: )[\w-]{22}$", r"\1ID", text, flags=re.MULTILINE)


def payload_file(text: str, where: Surroundings) -> str:
    """Where a transcript's files are."""
    return re.sub(r"^(Reading payloads from: ).*/", r"\1/", text, flags=re.MULTILINE)


def port_column(text: str, where: Surroundings) -> str:
    """The broker's port, in a column of its own."""
    port = where.bootstrap.rpartition(":")[2]
    return re.sub(rf"(?<=\s){port}(?= )", "9092".ljust(len(port)), text)


def measures(text: str, where: Surroundings) -> str:
    """What the performance tests measure, and when: but how many records there were in all."""
    text = re.sub(r"(\d+(?: steady state)? records sent, ).*", r"\1…", text)
    number = r"(?:[\d.]+|NaN|Infinity)"
    rest = rf"{number}, {number}, (\d+)(?:, {number}){{5}}$"
    # How far an interval's line has come depends on when it is told.
    text = re.sub(rf"^[\d: -]+, 0, {rest}", "(measured)", text, flags=re.MULTILINE)
    return re.sub(rf"^[\d: -]+, [\d: -]+, {rest}", r"(measured) \1", text, flags=re.MULTILINE)


def times(text: str, where: Surroundings) -> str:
    """Milliseconds since 1970, and how long a transaction takes."""
    text = re.sub(r"\b1\d{12}\b", "MS", text)
    return re.sub(r"(\bMS +\t)\d+ +\t", r"\1MS\t", text)


def commit_state(text: str, where: Surroundings) -> str:
    """A transaction that was just committed may have its markers or not."""
    return text.replace("PrepareCommit ", "CompleteCommit")


def stack_trace(text: str, where: Surroundings) -> str:
    """Java's stacks, with the line above that names the exception once more."""
    lines: list[str] = []
    is_within = False
    for line in text.splitlines(keepends=True):
        is_within = line.startswith(("\tat ", "\t...", "Caused by: ", "\tSuppressed")) or (
            is_within and not line.strip()
        )
        if not is_within:
            lines.append(line)
        elif line.startswith("\tat ") and lines and _is_told(lines[-1], lines[:-1]):
            lines.pop()
    return "".join(lines)


def commit_time(text: str, where: Surroundings) -> str:
    """In records of Kafka's own topics."""
    return re.sub(r'("commitTimestamp":)\d+', r"\1MS", text)


def _is_told(line: str, before: list[str]) -> bool:
    """Whether a line names an exception whose message was told."""
    match = re.match(r"[\w$.]+(?:Exception|Error)(?:: (.+))?$", line)
    return match is not None and any((match[1] or "null") in each for each in before)


def note(text: str, where: Surroundings) -> str:
    """What ours says of options of former days."""
    return re.sub(r"^note: .*\n", "", text, flags=re.MULTILINE)


def log_line(text: str, where: Surroundings) -> str:
    """What ours writes where Java writes its log, which is off here."""
    return re.sub(r"^\[error\] .*\n", "", text, flags=re.MULTILINE)


def jackson(text: str, where: Surroundings) -> str:
    """What Jackson throws where the Java tool goes on all the same."""
    return re.sub(r"^com\.fasterxml\..*\n( at \[Source: .*\n)?", "", text, flags=re.MULTILINE)


def low_watermarks(text: str, where: Surroundings) -> str:
    """Java has them in a map whose order is another in each process."""
    lines = text.splitlines(keepends=True)
    order = iter(sorted(line for line in lines if line.startswith("partition: ")))
    return "".join(next(order) if line.startswith("partition: ") else line for line in lines)


def valid_states(text: str, where: Surroundings) -> str:
    """Java has them, and types, in a set whose order is another in each process."""
    lists = r"(Valid (?:states|types) are: )(.+)$"
    return re.sub(
        lists, lambda match: match[1] + ", ".join(sorted(match[2].split(", "))), text, flags=re.MULTILINE
    )


def option_sets(text: str, where: Surroundings) -> str:
    """Options that Java has in a set whose order is another in each process."""
    before = r"(?:(?<=\[)|(?<=one of these options: )|(?<=takes the following options: ))"
    lists = before + r"\[[\w-]+\](?:, \[[\w-]+\])+"
    return re.sub(lists, lambda match: ", ".join(sorted(match[0].split(", "))), text)


def rebalance_hint(text: str, where: Surroundings) -> str:
    """Java's consumer advertises a protocol that logd does not speak."""
    return re.sub(r"^The consumer rebalance protocol \(KIP-848\) is .*\n", "", text, flags=re.MULTILINE)


def commit_topic(text: str, where: Surroundings) -> str:
    """In records of Kafka's own topics, too."""
    return re.sub(r'("topicId":)"[\w-]{22}"', r'\1"ID"', text)


RULES: tuple[Callable[[str, Surroundings], str], ...] = (
    address,
    log_folder,
    topic_id,
    member_id,
    usage,
    parser_usage,
    cluster_id,
    payload_file,
    port_column,
    measures,
    times,
    commit_state,
    stack_trace,
    commit_time,
    note,
    log_line,
    jackson,
    low_watermarks,
    valid_states,
    option_sets,
    rebalance_hint,
    commit_topic,
)


def even_out(text: str, where: Surroundings) -> str:
    """All rules, one after the other."""
    for rule in RULES:
        text = rule(text, where)
    return text
