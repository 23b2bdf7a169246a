"""The servers and files that the pages' commands run on: two data centres, a registry, and a folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT, blocks
from tests.millstream.invoking import On
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port
from tests.support.registry import StandInRegistry, asked_registry
from tests.support.topics import create_topic

SCHEMA = {"type": "record", "name": "order", "fields": [{"name": "id", "type": "int"}]}
ANSWERS = {
    "/schemas/ids/300": {"schema": json.dumps(SCHEMA)},
    "/schemas/ids/301": {"schema": json.dumps(SCHEMA)},
    "/subjects/orders-avro-value/versions/latest": {"id": 300},
}
FLIGHTS = "year,month,day,carrier\n2013,1,1,UA\n2013,1,2,AA\n"
RECORDS = 1000
"""How many the measurements take."""
GROUP_PARTITIONS = "4"
"""Partitions of __consumer_offsets: a page names partition 3."""
STAND_INS = ("mvn", "go", "gradlew")
"""Other languages' tools: they say where the broker is."""


@dataclass(frozen=True)
class Stage:
    """`command` makes of a page's line one that can be run in `folder`, with `environment`."""

    folder: Path
    environment: dict[str, str]
    places: dict[str, str]
    """Addresses and folders here, by what the pages call them."""

    def command(self, line: str) -> str:
        """Return the page's line with the addresses, folders and counts of this run."""
        for name, here in self.places.items():
            line = line.replace(name, here)
        # Enough to see that it works.
        line = re.sub(r"--num-records \d+", f"--num-records {RECORDS}", line)
        if "--value-type" in line:
            # The pages' orders are JSON in one place and Avro in the next.
            kind = line.partition("--value-type ")[2].split()[0]
            line = re.sub(r"\borders\b", f"orders-{kind}", line, count=1)
        return line

    def lay_out(self, pages: Iterable[Path], page: Path) -> None:
        """Write the files that ``pages`` show, then those of ``page`` over others of the same name."""
        for shown in (*pages, page):
            for block in blocks(shown, "properties"):
                if name := re.match(r"# (\S+[.]properties)\n", block.text):
                    (self.folder / name[1]).write_text(self.command(block.text))


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Made in an empty folder."""
    brokers = {"offsets.topic.num.partitions": GROUP_PARTITIONS}
    with (
        LogdProcess(folder / "dc1", brokers) as dc1,
        LogdProcess(folder / "dc2", brokers) as dc2,
        asked_registry(ANSWERS) as registry,
    ):
        for name in ("flights", "orders", "orders-avro", "orders-protobuf", "lines", "words"):
            create_topic(dc1, name)
        create_topic(dc2, "dc1.flights")
        _fill(folder, dc1, registry)
        # A broker that ends has written its indexes, which are behind the log otherwise.
        dc1.stop()
        dc1.start()
        _write_files(folder, dc1, registry)
        yield Stage(folder, _environment(folder, dc1), _places(folder, dc1, dc2, registry))


def _places(folder: Path, dc1: LogdProcess, dc2: LogdProcess, registry: StandInRegistry) -> dict[str, str]:
    return {
        "http://localhost:8081": registry.address,
        "PLAINTEXT://127.0.0.1:9092": f"PLAINTEXT://127.0.0.1:{free_port()}",
        **{f"{host}:9092": dc1.bootstrap for host in ("localhost", "127.0.0.1", "dc1")},
        **{f"{host}:{port}": dc2.bootstrap for host, port in (("127.0.0.1", 9192), ("dc2", 9092))},
        "/var/lib/millstream": str(folder / "var"),
        ".venv/bin/": "",
    }


def _environment(folder: Path, dc1: LogdProcess) -> dict[str, str]:
    programs = folder / "bin"
    programs.mkdir()
    _script(programs / "millstream", f'exec {sys.executable} -m millstream "$@"')
    for name in STAND_INS:
        _script(programs / name, 'test -n "$KAFKA_BOOTSTRAP_SERVERS"')
    shutil.copy(programs / "gradlew", folder)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{folder}",
        "KAFKA_BOOTSTRAP_SERVERS": dc1.bootstrap,
        "XDG_CONFIG_HOME": str(folder / "settings"),
        "HOME": str(folder),
        "TMPDIR": str(folder),  # other tests run applications of the same ids in the default state directory
    }


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _write_files(folder: Path, dc1: LogdProcess, registry: StandInRegistry) -> None:
    (folder / "server.properties").write_text(
        f"listeners=PLAINTEXT://127.0.0.1:{free_port()}\nlog.dirs={folder / 'server'}\n"
    )
    (folder / "client.properties").write_text("client.id=page\n")
    (folder / "orders.jsonl").write_text('{"key": "ann", "value": "1"}\n{"key": "bob", "value": "2"}\n')
    (folder / "payloads.txt").write_text("one\ntwo\n")
    (folder / "order.avsc").write_text(json.dumps(SCHEMA))
    (folder / "flights.csv").write_text(FLIGHTS)
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", FLIGHTS)
    (program,) = [
        block for block in blocks(ROOT / "docs/streams.md", "python") if "def topology()" in block.text
    ]
    (folder / "words.py").write_text(program.text)
    (folder / "data").symlink_to(dc1.folder / "data")
    for name in ("flights-0", "__consumer_offsets-3"):
        (folder / name).symlink_to(folder / "data" / name)


def _fill(folder: Path, dc1: LogdProcess, registry: StandInRegistry) -> None:
    """Records, groups with offsets, and a transaction that is over."""
    on = On(dc1.bootstrap)
    for topic, options, text in (
        ("flights", (), "1\n"),
        ("lines", (), "a b\n"),
        ("orders", ("--transactional-id", "orders"), "1\n" * RECORDS),
        ("orders-avro", ("--value-type", "avro", "--schema-registry", registry.address), '{"id": 7}\n'),
    ):
        (folder / "lines").write_text(text)
        on.done("produce", topic, folder / "lines", *options)
    for group, topic in (("flight-counts", "flights"), ("shop", "orders-avro")):
        on.done("group", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute")
