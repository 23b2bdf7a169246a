"""The players of transcripts: the Java tools, all in one JVM, or ours, in this process."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Protocol, Self

from tests.millstream.invoking import invoke
from tests.millstream.kafka_tools.transcript import Outcome
from tests.support import java

JAVA_CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-configs": "org.apache.kafka.tools.ConfigCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
}


@contextmanager
def _stdin(text: str) -> Iterator[None]:
    """Replace the process's stdin by this text. The tools read its descriptor."""
    usual = os.dup(0)
    with TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(usual, 0)
        os.close(usual)


class Player(Protocol):
    """A player that runs a tool to its end, in the test's current folder."""

    def run(self, words: Sequence[str], stdin: str) -> Outcome:
        """Run a tool with this stdin. Return its exit status and output."""
        ...


class OurTools:
    """Our tools: `millstream kafka-…`."""

    def run(self, words: Sequence[str], stdin: str) -> Outcome:
        with _stdin(stdin):
            result = invoke(*words)
        return Outcome(result.exit_code, result.stdout, result.stderr)


class JavaTools:
    """The Java tools, run by tests/java/Tools.java in the folder with the transcripts' files."""

    def __init__(self, folder: Path) -> None:
        options = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-Djava.security.manager=allow")
        self._process = subprocess.Popen(
            java.program("Tools", options=options),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="ascii",
        )

    def run(self, words: Sequence[str], stdin: str) -> Outcome:
        """Run a tool in the JVM. The first word is a tool's name, or its class."""
        assert self._process.stdin is not None and self._process.stdout is not None
        line = " ".join(_encoded(word) for word in (JAVA_CLASSES.get(words[0], words[0]), *words[1:], stdin))
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n")
        assert answer, f"the JVM ended with {self._process.wait()}"
        status, stdout, stderr = answer.split(" ")
        assert status != "never", f"{words} does not end: {_decoded(stdout)}{_decoded(stderr)}"
        return Outcome(int(status), _decoded(stdout), _decoded(stderr))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
