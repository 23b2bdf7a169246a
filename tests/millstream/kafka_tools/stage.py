"""Playing a transcript: its steps one after the other, against a broker.

A transcript may contain these directions:

    & file NAME                     write a file of the lines of stdin below
    & produce TOPIC:PARTITION VALUE…    append records with the timestamps 1000, 2000, …
    & join GROUP TOPIC CLIENT [PROTOCOL [INSTANCE]]    start a member
    & leave CLIENT                  stop the member
    & commit GROUP TOPIC:PARTITION OFFSET
    & transaction ID TOPIC:PARTITION VALUE…     begin a transaction, and write to it
    & end-transaction ID            commit the transaction
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from tests.millstream.kafka_tools.members import Members
from tests.millstream.kafka_tools.players import Player
from tests.millstream.kafka_tools.rules import Surroundings, even_out
from tests.millstream.kafka_tools.transactions import Transactions
from tests.millstream.kafka_tools.transcript import Outcome, Step, Transcript
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

BOOTSTRAP = "localhost:9092"
"""The broker's address in transcripts."""
DATA = "/data"
"""The broker's log directory in transcripts."""


class Stage:
    """A broker with a player of transcripts, and the folder of their files."""

    def __init__(self, folder: Path, where: Surroundings, player: Player) -> None:
        self.folder = folder
        self.where = where
        self.player = player
        self.members = Members(where.bootstrap)
        self.transactions = Transactions(where.bootstrap)
        self.directions: dict[str, Callable[[Step, list[str]], None]] = {
            "file": self._file,
            "produce": self._produce,
            "join": lambda step, words: self.members.join(*words),
            "leave": lambda step, words: self.members.leave(*words),
            "transaction": lambda step, words: self.transactions.begin(*words),
            "end-transaction": lambda step, words: self.transactions.end(*words),
            "commit": lambda step, words: self.members.commit(*words),
        }

    def play(self, transcript: Transcript) -> Transcript:
        """Play the transcript. Return it with the answers of this player."""
        try:
            return Transcript(
                transcript.path, transcript.head, [self._step(step) for step in transcript.steps]
            )
        finally:
            self.members.close()
            self.transactions.close()

    def _step(self, step: Step) -> Step:
        words = shlex.split(step.text.replace(BOOTSTRAP, self.where.bootstrap))
        played = Step(step.mark, step.text, step.before, step.stdin, on_kafka=step.on_kafka)
        if step.mark == "&":
            self.directions[words[0]](step, words[1:])
        else:
            outcome = self.player.run(words, "".join(f"{line}\n" for line in step.stdin))
            evened = (even_out(text, self.where) for text in (outcome.stdout, outcome.stderr))
            played.answer = list(Outcome(outcome.status, *evened).lines())
        return played

    def _file(self, step: Step, words: list[str]) -> None:
        (name,) = words
        (self.folder / name).write_text(
            "".join(f"{line}\n" for line in step.stdin)
            .replace(BOOTSTRAP, self.where.bootstrap)
            .replace(DATA, str(self.where.data))
        )

    def _produce(self, step: Step, words: list[str]) -> None:
        topic, _, partition = words[0].partition(":")
        records = [(1000 * n, None, value.encode(), ()) for n, value in enumerate(words[1:], 1)]
        with RawClient(int(self.where.bootstrap.rpartition(":")[2])) as client:
            # A topic just made may not be known yet.
            wait_for(lambda: client.produce(topic, records, partition=int(partition or 0)).error_code == 0)
