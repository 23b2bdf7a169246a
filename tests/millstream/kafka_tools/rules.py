"""Rules that even out what differs from run to run in the tools' output."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
USAGE = re.compile(r"^Option +Description *\n-+ +-+ *\n(?:.*\n?)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The broker that a transcript was played on: its address and log directory."""

    bootstrap: str
    data: Path


def address(text: str, where: Surroundings) -> str:
    """Replace the broker's address."""
    port = where.bootstrap.rpartition(":")[2]
    return re.sub(rf"(localhost|127\.0\.0\.1):{port}\b", "localhost:9092", text)


def log_directory(text: str, where: Surroundings) -> str:
    """Replace the path of the broker's log directory."""
    return text.replace(str(where.data), "/data")


def topic_id(text: str, where: Surroundings) -> str:
    """Replace topic ids, which are random."""
    return re.sub(r"(TopicId: )[\w-]{22}(?=\t|$)", r"\1ID", text, flags=re.MULTILINE)


def member_id(text: str, where: Surroundings) -> str:
    """Replace the random part of member ids, the whole id in KIP-848."""
    return re.sub(rf"{UUID}|(?<= )[\w+/-]{{22}}(?= +/)", "UUID", text)


def usage(text: str, where: Surroundings) -> str:
    """Leave out the table of options. test_options compares the options."""
    return USAGE.sub("(usage)\n", text)


def parser_usage(text: str, where: Surroundings) -> str:
    """Leave out argparse4j's usage and help, and undo its line breaks in the error after them."""
    if not text.startswith("usage: "):
        return text
    _, *error = re.split(r"(?<=:)\s+(?=error:)", text, maxsplit=1)
    # Words are spread over the line, and broken behind hyphens.
    return "\n".join(["(usage)", *(" ".join(each.split()).replace("- ", "-") for each in error), ""])


def cluster_id(text: str, where: Surroundings) -> str:
    """Replace the cluster id, which is random."""
    return re.sub(r"^(Cluster ID: )[\w-]{22}$", r"\1ID", text, flags=re.MULTILINE)


def payload_file(text: str, where: Surroundings) -> str:
    """Leave out the folder of a transcript's files."""
    return re.sub(r"^(Reading payloads from: ).*/", r"\1/", text, flags=re.MULTILINE)


def port_column(text: str, where: Surroundings) -> str:
    """Replace the broker's port in a column of its own."""
    port = where.bootstrap.rpartition(":")[2]
    return re.sub(rf"(?<=\s){port}(?= )", "9092".ljust(len(port)), text)


def measures(text: str, where: Surroundings) -> str:
    """Leave out what the performance tests measure, and the times, but keep the number of records."""
    text = re.sub(r"(\d+(?: steady state)? records sent, ).*", r"\1…", text)
    number = r"(?:[\d.]+|NaN|Infinity)"
    rest = rf"{number}, {number}, (\d+)(?:, {number}){{5}}$"
    # The count in an interval's line depends on when the line is printed.
    text = re.sub(rf"^[\d: -]+, 0, {rest}", "(measured)", text, flags=re.MULTILINE)
    return re.sub(rf"^[\d: -]+, [\d: -]+, {rest}", r"(measured) \1", text, flags=re.MULTILINE)


def times(text: str, where: Surroundings) -> str:
    """Replace milliseconds since 1970, and the duration of a transaction."""
    text = re.sub(r"\b1\d{12}\b", "MS", text)
    return re.sub(r"(\bMS +\t)\d+ +\t", r"\1MS\t", text)


def commit_state(text: str, where: Surroundings) -> str:
    """Treat a committed transaction as complete: its markers may still be missing."""
    return text.replace("PrepareCommit ", "CompleteCommit")


def stack_trace(text: str, where: Surroundings) -> str:
    """Leave out Java's stacks, and the line above them if it repeats the exception."""
    lines: list[str] = []
    is_within = False
    for line in text.splitlines(keepends=True):
        is_within = line.startswith(("\tat ", "\t...", "Caused by: ", "\tSuppressed")) or (
            is_within and not line.strip()
        )
        if not is_within:
            lines.append(line)
        elif line.startswith("\tat ") and lines and _is_repeated(lines[-1], lines[:-1]):
            lines.pop()
    return "".join(lines)


def commit_time(text: str, where: Surroundings) -> str:
    """Replace commit timestamps in records of Kafka's own topics."""
    return re.sub(r'("commitTimestamp":)\d+', r"\1MS", text)


def _is_repeated(line: str, before: list[str]) -> bool:
    """Return True if a line names an exception whose message is in the lines before."""
    match = re.match(r"[\w$.]+(?:Exception|Error)(?:: (.+))?$", line)
    return match is not None and any((match[1] or "null") in each for each in before)


def note(text: str, where: Surroundings) -> str:
    """Leave out our notes on former options."""
    return re.sub(r"^note: .*\n", "", text, flags=re.MULTILINE)


def log_line(text: str, where: Surroundings) -> str:
    """Leave out our log lines. Java's log is off in the tests."""
    return re.sub(r"^\[error\] .*\n", "", text, flags=re.MULTILINE)


def jackson(text: str, where: Surroundings) -> str:
    """Leave out Jackson's exceptions after which the Java tool continues."""
    return re.sub(r"^com\.fasterxml\..*\n( at \[Source: .*\n)?", "", text, flags=re.MULTILINE)


def low_watermarks(text: str, where: Surroundings) -> str:
    """Sort low watermarks: the order of Java's map differs from process to process."""
    lines = text.splitlines(keepends=True)
    order = iter(sorted(line for line in lines if line.startswith("partition: ")))
    return "".join(next(order) if line.startswith("partition: ") else line for line in lines)


def valid_states(text: str, where: Surroundings) -> str:
    """Sort valid states and types: the order of Java's set differs from process to process."""
    lists = r"(Valid (?:states|types) are: )(.+)$"
    return re.sub(
        lists, lambda match: match[1] + ", ".join(sorted(match[2].split(", "))), text, flags=re.MULTILINE
    )


def option_sets(text: str, where: Surroundings) -> str:
    """Sort lists of options: the order of Java's set differs from process to process."""
    before = r"(?:(?<=\[)|(?<=one of these options: )|(?<=takes the following options: ))"
    lists = before + r"\[[\w-]+\](?:, \[[\w-]+\])+"
    return re.sub(lists, lambda match: ", ".join(sorted(match[0].split(", "))), text)


def rebalance_hint(text: str, where: Surroundings) -> str:
    """Leave out the hint of Java's consumer at KIP-848, which logd does not support."""
    return re.sub(r"^The consumer rebalance protocol \(KIP-848\) is .*\n", "", text, flags=re.MULTILINE)


def commit_topic(text: str, where: Surroundings) -> str:
    """Replace topic ids in records of Kafka's own topics."""
    return re.sub(r'("topicId":)"[\w-]{22}"', r'\1"ID"', text)


RULES: tuple[Callable[[str, Surroundings], str], ...] = (
    address,
    log_directory,
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
    """Apply all rules, one after the other."""
    for rule in RULES:
        text = rule(text, where)
    return text
