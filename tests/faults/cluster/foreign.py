"""Foreign clients' programs as writers and readers; `clients/speech.py` says how one talks to them.

Each is a process of its own, so that what a client does in its threads, or does not, is as with its users.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.faults.cluster.writers import PARTITIONS, Writer
from tests.support.waiting import wait_for

END_SECONDS = 200
TAIL = 3000
"""Characters of what a program complained of."""


@dataclass(frozen=True, slots=True)
class ForeignClient:
    """A client: its program's command line, and what it cannot do."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_idempotent: bool = True
    tells_commits: bool = True


class Program:
    """A run of a program. `lines` yields its output up to its end; `end` makes it end."""

    def __init__(self, client: ForeignClient, kind: str, *arguments: object, log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*client.command, kind, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **client.environment},
                encoding="utf-8",
            )

    def lines(self) -> Iterator[list[str]]:
        """Words, line by line; AssertionError with its complaints when it ends badly."""
        assert self._process.stdout is not None
        with self._process.stdout:
            yield from map(str.split, self._process.stdout)
        status = self._process.wait(END_SECONDS)
        assert status == 0, f"ended with {status}:\n{self._log.read_text(errors='replace')[-TAIL:]}"

    def end(self) -> None:
        """Close the program's input. It may take its time; `lines` ends with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """Kill the program if it still runs."""
        self._process.kill()
        self._process.wait()
        self.end()


class ForeignWriter(Writer):
    """A client's producer, with acks=all. `counts`: how many records are acknowledged, by partition."""

    def __init__(self, client: ForeignClient, bootstrap: str, topic: str, log: Path) -> None:
        super().__init__(bootstrap, topic)
        self.is_idempotent = client.is_idempotent
        self.counts = dict.fromkeys(range(self.partitions), 0)
        self._program = Program(client, "write", bootstrap, topic, self.partitions, log=log)

    def _guarded(self) -> None:
        # `failed` tells it: out of a thread it would be blamed on whatever test runs.
        with contextlib.suppress(Exception):
            super()._guarded()

    def run(self) -> None:
        threading.Thread(target=self._ended, name=f"ends {self.topic}", daemon=True).start()
        for word, *numbers in self._program.lines():
            if word == "sent":
                self.sent = int(numbers[0])
            else:
                number, partition, offset = map(int, numbers)
                self.noted(number, partition, offset if offset >= 0 else None)
                self.counts[partition] += 1

    def _ended(self) -> None:
        self.is_over.wait()
        self._program.end()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, error, traceback)
        finally:
            self._program.kill()


class ForeignReader:
    """A member of a group that commits what it has read; it never begins behind what was committed.

    `numbers`: what was read, by partition and offset; `committed`: where the broker has said yes to, by
    partition.
    """

    def __init__(self, client: ForeignClient, bootstrap: str, topic: str, group: str, log: Path) -> None:
        self._client = client
        self._arguments = bootstrap, topic, group
        self._log = log
        self.numbers: dict[int, dict[int, int]] = {partition: {} for partition in range(PARTITIONS)}
        self.committed: dict[int, int] = {}
        self.failed: list[BaseException] = []

    def __enter__(self) -> Self:
        self._next: dict[int, int] = {}
        self._program = Program(self._client, "read", *self._arguments, log=self._log)
        self._thread = threading.Thread(target=self._guarded, name="reads", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._program.end()
            self._thread.join(END_SECONDS)
        self._program.kill()
        self._thread.join()
        if error is None:
            self.check()

    def reopen(self) -> None:
        """Leave the group, and begin again where it has come to."""
        self.__exit__(None, None, None)
        self.__enter__()

    def _guarded(self) -> None:
        try:
            for word, *numbers in self._program.lines():
                getattr(self, f"_{word}")(*map(int, numbers))
        except BaseException as error:
            self.failed.append(error)

    def _read(self, partition: int, offset: int, number: int) -> None:
        numbers = self.numbers[partition]
        if offset != self._next.get(partition):
            # Where it begins, or begins again: nothing is left out.
            earliest = self.committed.get(partition, 0)
            assert earliest <= offset <= len(numbers), (
                f"{partition}: {offset}, not {earliest} to {len(numbers)}"
            )
        assert numbers.setdefault(offset, number) == number, (
            f"{partition}, {offset}: {numbers[offset]}, {number}"
        )
        self._next[partition] = offset + 1

    def _committed(self, partition: int, offset: int) -> None:
        self.committed[partition] = offset

    def check(self) -> None:
        """AssertionError when it has failed."""
        assert not self.failed, self.failed[0]

    def count(self) -> int:
        """Return how many different records were read."""
        return sum(map(len, self.numbers.values()))

    def comes_to(self, count: int) -> None:
        """Wait until so many are read."""
        try:
            wait_for(lambda: self.count() >= count or bool(self.failed))
        except AssertionError as error:
            raise AssertionError(f"{self.count()} of {count} records are read") from error
        self.check()
