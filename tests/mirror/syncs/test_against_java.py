"""Kafka's own OffsetSyncStore translates every offset of random histories as ours does."""

from __future__ import annotations

import random

from kafka_client import TopicPartition
from mirror.offsets import OffsetSync
from mirror.syncs.store import OffsetSyncStore
from tests.support import java

SEED = 31
TP = TopicPartition("t", 0)
LONG_MAX = 2**63 - 1


def history(source: random.Random) -> list[str]:
    """Return the words of a history, as OffsetSyncHistories.java reads them."""
    words, upstream, downstream = [source.choice(("latest", "all"))], source.randrange(3), 0
    step = source.choice((1, 3, 100, 10_000, 2**40, 2**58))
    syncs = source.choice((1, 5, 40, 200))
    loaded = source.randrange(syncs + 1)
    for number in range(syncs):
        if number == loaded:
            words.append("end")
        words.append(f"{upstream}:{downstream}")
        if not source.randrange(60):
            upstream = source.randrange(upstream + 1)
        upstream = min(upstream + source.randrange(step + 1), LONG_MAX)
        downstream += source.randrange(min(step, 1000) + 1)
        if not source.randrange(4):
            words += questions(source, upstream)
    return [*words, "end", *questions(source, upstream), f"?{LONG_MAX}"]


def questions(source: random.Random, end: int) -> list[str]:
    near = [max(end - source.getrandbits(source.randrange(1, 62)), 0) for _ in range(6)]
    return [f"?{upstream}" for upstream in (*near, end, 0)]


def ours(words: list[str]) -> str:
    store = OffsetSyncStore(latest_only=words[0] == "latest")
    translations = []
    for word in words[1:]:
        if word == "end":
            store.finish_loading()
        elif word.startswith("?"):
            offset = store.translate(TP, int(word[1:]))
            translations.append("none" if offset is None else str(offset))
        else:
            upstream, downstream = map(int, word.split(":"))
            store.add(OffsetSync(TP, upstream, downstream, upstream, downstream))
    return " ".join(translations)


@java.needs_jar("connect-mirror")
def test_java_translates_the_same_offsets() -> None:
    source = random.Random(SEED)
    histories = [history(source) for _ in range(600)]
    answers = java.run_program("OffsetSyncHistories", stdin="\n".join(map(" ".join, histories))).splitlines()
    for words, answer in zip(histories, answers, strict=True):
        assert ours(words) == answer, words
    translations = " ".join(answers).split()
    assert translations.count("none") > 100
    assert translations.count("-1") > 100
    assert len(set(translations)) > 1000
