"""Kafka's tools against logd and Apache Kafka, line by line as the Java tools answer.

The golden transcripts are what the Java tools print. Our tools must print the same lines in the same order.
The Java tools must print the same words in any order: a map in the order of Java's HashMap, which ours sort.
With REWRITE=1 the tests that run the Java tools write the golden transcripts. The Java tools' answers on
Apache Kafka change only with its version: depth 1 checks some of them, more depth or REWRITE=1 checks all.
Most transcripts share a broker of Apache Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.millstream.kafka_tools.players import JavaTools, OurTools, Player
from tests.millstream.kafka_tools.rules import Surroundings
from tests.millstream.kafka_tools.settled import Settled
from tests.millstream.kafka_tools.shared_kafka import SharedKafka
from tests.millstream.kafka_tools.stage import Stage
from tests.millstream.kafka_tools.transcript import FOLDER, Transcript, in_any_order, paths, read
from tests.support import java
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import ONE_IN, deep, sample
from tests.support.logd_process import LogdProcess

OWN_BROKER = {
    "configs",  # changes the broker's settings
    "console-consumer-internal",  # reads Kafka's own topics from their beginning
    "log-dirs",  # shows every partition of the broker
    "transactions",  # shows producers' ids, which go on
}
"""Transcripts that show state of a broker that cannot be cleared."""

each = pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def java_tools(folder: Path) -> Iterator[JavaTools]:
    with JavaTools(folder) as tools:
        yield tools


def on_logd(transcript: Transcript, tmp_path: Path, folder: Path, player: Player) -> Transcript:
    with LogdProcess(tmp_path / "logd", transcript.settings) as logd:
        return Stage(folder, Surroundings(logd.bootstrap, logd.folder / "data"), player).play(transcript)


@pytest.fixture(scope="module")
def shared_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedKafka]:
    with SharedKafka(tmp_path_factory.mktemp("shared")) as shared:
        yield shared


@pytest.fixture
def kafka(path: Path, shared_kafka: SharedKafka, tmp_path: Path) -> Iterator[ApacheKafka]:
    """A broker of Apache Kafka for the transcript: its own, or a shared one."""
    settings = read(path).settings
    if path.stem in OWN_BROKER:
        with ApacheKafka(tmp_path / "kafka", settings) as alone:
            yield alone
    else:
        yield shared_kafka.cleared(settings)


def on_kafka(transcript: Transcript, kafka: ApacheKafka, folder: Path, player: Player) -> Transcript:
    settled = Settled(player, kafka.bootstrap)
    return Stage(folder, Surroundings(kafka.bootstrap, kafka.data), settled).play(transcript)


@sample(6)
@each
def test_ours(path: Path, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    golden = read(path)

    played = on_logd(golden, tmp_path, folder, OurTools())

    assert played.answers(of_kafka=False) == golden.answers(of_kafka=False)


@deep
@java.needs_javac
@each
def test_the_golden_answers_are_javas(
    path: Path, tmp_path: Path, folder: Path, java_tools: JavaTools
) -> None:
    golden = read(path)

    played = on_logd(golden, tmp_path, folder, java_tools)

    if os.environ.get("REWRITE"):
        played.keep_order_of(golden)
        path.write_text(played.text())
    assert played.unordered(of_kafka=False) == read(path).unordered(of_kafka=False)


@deep
@java.needs_javac
@pytest.mark.parametrize("path", paths()[::ONE_IN], ids=lambda path: path.stem)
def test_the_golden_answers_are_javas_on_apache_kafka(
    path: Path, kafka: ApacheKafka, folder: Path, java_tools: JavaTools
) -> None:
    golden = read(path)

    played = on_kafka(golden, kafka, folder, java_tools)

    if os.environ.get("REWRITE"):
        for step, there in zip(golden.steps, played.steps, strict=True):
            if in_any_order(there.answer) != in_any_order(step.answer_of(of_kafka=True)):
                step.on_kafka = there.answer if there.answer != step.answer else None
        path.write_text(golden.text())
    assert played.unordered(of_kafka=False) == read(path).unordered(of_kafka=True)


@deep
@java.needs_kafka
@each
def test_ours_on_apache_kafka(
    path: Path, kafka: ApacheKafka, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    golden = read(path)

    played = on_kafka(golden, kafka, folder, OurTools())

    assert played.answers(of_kafka=False) == golden.answers(of_kafka=True)


of_kafka_alone = pytest.mark.parametrize("path", paths(FOLDER / "apache-kafka"), ids=lambda path: path.stem)
"""Transcripts of features that logd does not have."""


@deep
@java.needs_javac
@of_kafka_alone
def test_the_golden_answers_are_javas_where_logd_has_none(
    path: Path, kafka: ApacheKafka, folder: Path, java_tools: JavaTools
) -> None:
    golden = read(path)

    played = on_kafka(golden, kafka, folder, java_tools)

    if os.environ.get("REWRITE"):
        played.keep_order_of(golden)
        path.write_text(played.text())
    assert played.unordered(of_kafka=False) == read(path).unordered(of_kafka=False)


@deep
@java.needs_kafka
@of_kafka_alone
def test_ours_where_logd_has_none(
    path: Path, kafka: ApacheKafka, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)

    played = on_kafka(read(path), kafka, folder, OurTools())

    assert played.text() == path.read_text()
