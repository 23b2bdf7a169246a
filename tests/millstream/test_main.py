from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from millstream.main import GROUP, OWN
from tests.support.depth import deep

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "millstream", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_every_package_offers_its_command() -> None:
    listed = run("--help").stdout

    for name in OWN:
        assert name in listed


def test_the_table_says_what_the_entry_points_say() -> None:
    points = distribution("millstream").entry_points.select(group=GROUP)
    assert {point.name: point.value for point in points} == {name: own.place for name, own in OWN.items()}


def test_an_unknown_command_is_named() -> None:
    ended = run("lodg")

    assert ended.returncode == 2
    assert "Did you mean 'logd'?" in ended.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["topic", "--help"], ["topic", "create", "--help"]])
def test_help_waits_for_nothing(arguments: list[str]) -> None:
    script = (
        "import sys; from millstream.main import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "slow = {'asyncio', 'rich', 'msgspec', 'kafka_client.wire', 'logd.config'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, timeout=60)


@deep
def test_a_command_loads_what_it_takes_alone() -> None:
    script = (
        "import sys; from millstream.main import app\n"
        "try: app(['topic', 'list', '-o', 'json', '-b', '127.0.0.1:1', '--command-config', sys.argv[1]])\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'http.client', 'cryptography', 'kafka_client.records'}\n"
        "heavy.add('kafka_client.producer.producer')\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, os.devnull], check=True, timeout=60)


def test_a_subcommand_is_loaded_alone() -> None:
    script = (
        "import sys; from millstream.main import app; import typer.main\n"
        "command = typer.main.get_command(app)\n"
        "command.get_command(None, 'logd')\n"
        "heavy = {'rocksdict', 'pyspark', 'pyarrow', 'kazoo', 'connect', 'streams'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_commands_about_records_begin_without_what_they_seldom_need() -> None:
    script = (
        "import sys, millstream.commands.produce.cli, millstream.commands.consume.cli\n"
        "import millstream.commands.bench.cli\n"
        "seldom = {'rich.table', 'yaml', 'fastavro', 'google.protobuf', 'connect', 'logd.groups'}\n"
        "assert not seldom & set(sys.modules), seldom & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize("absent", ["cc", "java"])
def test_what_a_machine_lacks_is_said_with_the_command_that_installs_it(tmp_path: Path, absent: str) -> None:
    for tool in {"sed", "head", "cut", "cc", "java"} - {absent}:
        if path := shutil.which(tool):
            (tmp_path / tool).symlink_to(path)
    script = ROOT / ".ci" / "prerequisites"

    ended = subprocess.run(
        ["/bin/sh", str(script), sys.executable], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )

    assert ended.returncode == 1
    assert "apt-get install --yes" in ended.stderr
    assert {"cc": "C compiler", "java": "Java 17"}[absent] in ended.stderr
