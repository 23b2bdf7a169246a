"""Exchange of records between Java's console tools and ours, in every format."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.millstream.kafka_tools.players import JavaTools, OurTools, Player
from tests.support import java
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

FORMATS = {
    "values": ([], "one\ntwo words\n\nüber\n"),
    "keys": (["parse.key=true"], "k1\tv1\nk2\tv2\tmore\n\t\n"),
    "keys-by-colon": (["parse.key=true", "key.separator=:"], "k1:v1\nk2:v2:more\n"),
    "headers": (["parse.headers=true"], "h1:x,h2:y\tvalue\nh1:,h1:twice\tvalue\n"),
    "all": (
        ["parse.key=true", "parse.headers=true", "null.marker=NULL"],
        "h1:x,h2:NULL\tkey\tvalue\nNULL\tNULL\tNULL\nh:1\tkey\tNULL\nh:1\tNULL\tvalue\n",
    ),
    "other-separators": (
        [
            "parse.key=true",
            "parse.headers=true",
            "key.separator=/",
            "headers.delimiter=#",
            "headers.separator=;",
            "headers.key.separator==",
        ],
        "a=1;b=2#key/value\n",
    ),
    "errors-passed-over": (
        ["parse.key=true", "parse.headers=true", "ignore.error=true"],
        "name\tkey\tvalue\nall of it\n",
    ),
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ALL = ("timestamp", "partition", "offset", "headers", "key", "value")


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("logd"), {"auto.create.topics.enable": "true"}) as process:
        yield process


@pytest.fixture(scope="module")
def java_tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaTools]:
    with JavaTools(tmp_path_factory.mktemp("files")) as tools:
        yield tools


def written(player: Player, logd: LogdProcess, topic: str, options: list[str], text: str) -> None:
    properties = [word for option in options for word in ("--reader-property", option)]
    for codec in CODECS:
        result = player.run(
            [
                "kafka-console-producer",
                *("--bootstrap-server", logd.bootstrap, "--topic", topic, "--compression-codec", codec),
                *properties,
            ],
            text,
        )
        assert (result.status, result.stdout) == (0, "")


def read(player: Player, logd: LogdProcess, topic: str, count: int) -> str:
    shown = [word for name in ALL for word in ("--formatter-property", f"print.{name}=true")]
    result = player.run(
        [
            "kafka-console-consumer",
            *("--bootstrap-server", logd.bootstrap, "--topic", topic, "--partition", "0"),
            *("--offset", "earliest", "--max-messages", str(count), *shown),
        ],
        "",
    )
    assert result.stderr.endswith(f"Processed a total of {count} messages\n")
    return result.stdout


def without_times(text: str) -> list[str]:
    return [line.partition("\t")[2] for line in text.splitlines()]


@deep
@java.needs_javac
@pytest.mark.parametrize("name", FORMATS)
def test_exchange(name: str, logd: LogdProcess, java_tools: JavaTools) -> None:
    options, text = FORMATS[name]
    count = len(CODECS) * text.count("\n")
    tools: dict[str, Player] = {"java": java_tools, "ours": OurTools()}

    for writer, player in tools.items():
        written(player, logd, f"{name}-{writer}", options, text)
    outputs = {
        (writer, reader): read(player, logd, f"{name}-{writer}", count)
        for writer in tools
        for reader, player in tools.items()
    }

    for writer in tools:
        assert outputs[writer, "ours"] == outputs[writer, "java"]
    assert without_times(outputs["ours", "java"]) == without_times(outputs["java", "java"])
