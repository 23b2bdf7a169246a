"""Transcripts: what Kafka's tools are asked and what they answer, as text.

    % num.partitions=2                  a setting of the broker, at the top
    # prose
    & produce a:0 one two               something done to the cluster meanwhile (`stage.py`)
    $ kafka-topics --bootstrap-server localhost:9092 --create --topic a
    < a line of stdin
    Created topic a.                    a line of stdout
    | $ …                               one that is empty, or begins like one of the marks here
    ! Missing required argument …       a line of stderr
    ? 1                                 the exit status, where it is not 0
    ~ …                                 all of these once more, where Apache Kafka's broker has other words;
                                        a ~ alone where nothing comes of it there

A line that ends with spaces has a ¶ after them.

The golden files are what the Java tools print, sorted where these print a map in the order of a HashMap.
With `REWRITE=1` the test that runs the Java tools writes the answers that differ in more than order.
`rules.py` evens out what differs from run to run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"
MARKS = "%#&$<!?|~"
SEPARATORS = re.compile(r"[\s,()\[\]{}]+")
END = "¶"
"""The mark after a line that ends with spaces."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit status and output of a tool."""

    status: int
    stdout: str
    stderr: str

    def lines(self) -> Iterator[str]:
        """Yield the output as lines of a transcript."""
        for line in self.stdout.splitlines():
            shown = _shown(line)
            yield shown if shown and shown[0] not in MARKS else f"| {shown}".rstrip()
        for line in self.stderr.splitlines():
            yield f"! {_shown(line)}".rstrip()
        if self.status != 0:
            yield f"? {self.status}"


def _shown(line: str) -> str:
    return line if line == line.rstrip() else line + END


@dataclass(slots=True)
class Step:
    """A line that runs a tool or a direction, with its answer."""

    mark: str
    """`$` for a tool, `&` for a direction."""
    text: str
    before: list[str]
    """Prose and empty lines above."""
    stdin: list[str] = field(default_factory=list)
    answer: list[str] = field(default_factory=list)
    on_kafka: list[str] | None = None
    """The answer on Apache Kafka's broker, or None if it is the same."""

    def answer_of(self, *, of_kafka: bool) -> list[str]:
        """Return the lines that the tool prints against Apache Kafka's broker, or against logd."""
        return self.on_kafka if of_kafka and self.on_kafka is not None else self.answer

    def lines(self) -> Iterator[str]:
        """Yield the step as lines of the transcript."""
        yield from self.before
        yield f"{self.mark} {self.text}"
        yield from (f"< {line}" for line in self.stdin)
        yield from self.answer
        if self.on_kafka is not None:
            yield from (f"~ {line}" for line in self.on_kafka) if self.on_kafka else ("~",)


@dataclass(slots=True)
class Transcript:
    """A transcript: the head of its file, and its steps."""

    path: Path
    head: list[str]
    steps: list[Step]

    @property
    def settings(self) -> dict[str, str]:
        """The broker's settings."""
        pairs = (line.removeprefix("% ").partition("=") for line in self.head if "=" in line)
        return {key: value for key, _, value in pairs}

    def answers(self, *, of_kafka: bool) -> list[str]:
        """Return the steps with their answers, on a broker of Apache Kafka or on logd."""
        lines: list[str] = []
        for step in self.steps:
            lines += [f"{step.mark} {step.text}", *step.answer_of(of_kafka=of_kafka)]
        return lines

    def unordered(self, *, of_kafka: bool) -> list[tuple[str, list[list[str]]]]:
        """Return each step with the words of its answer sorted, within each line and line by line.

        The Java tools print maps in the order of Java's HashMap, ours sort them.
        """
        return [
            (f"{step.mark} {step.text}", in_any_order(step.answer_of(of_kafka=of_kafka)))
            for step in self.steps
        ]

    def keep_order_of(self, golden: Transcript) -> None:
        """Take over the golden answers that differ from these in nothing but their order."""
        for step, before in zip(self.steps, golden.steps, strict=True):
            if in_any_order(step.answer) == in_any_order(before.answer):
                step.answer = before.answer

    def text(self) -> str:
        """Return the content of the file."""
        return "\n".join([*self.head, *(line for step in self.steps for line in step.lines()), ""])


def in_any_order(lines: Sequence[str]) -> list[list[str]]:
    """Return the lines' words, split at blanks, commas and brackets, in an order of their own."""
    return sorted(sorted(SEPARATORS.split(line)) for line in lines)


def read(path: Path) -> Transcript:
    """Read a transcript."""
    transcript = Transcript(path, [], [])
    before: list[str] = []
    for line in path.read_text().splitlines():
        mark, text = line[:1], line[2:]
        if mark == "%":
            transcript.head.append(line)
        elif mark in ("", "#"):
            before.append(line)
        elif mark in ("$", "&"):
            transcript.steps.append(Step(mark, text, before))
            before = []
        elif mark == "<":
            transcript.steps[-1].stdin.append(text)
        elif mark == "~":
            step = transcript.steps[-1]
            step.on_kafka = [*(step.on_kafka or ()), text] if text else []
        else:
            transcript.steps[-1].answer.append(line)
    return transcript


def paths(folder: Path = FOLDER) -> Sequence[Path]:
    """Return the transcripts of a folder."""
    return sorted(folder.glob("*.txt"))
