"""The completions of each shell, by its own protocol."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.millstream.invoking import On, invoke
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[On]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        on = On(process.bootstrap)
        on.done("topic", "create", "flights", "flags", "weather")
        on.done("group", "reset-offsets", "readers", "--topic", "flights", "--to-latest", "--execute")
        yield on


def offered(*words: str, folder: Path | None = None) -> list[str]:
    """For the last word, as bash asks."""
    ended = subprocess.run(
        [sys.executable, "-m", "millstream"],
        env={
            **os.environ,
            "XDG_CONFIG_HOME": str(folder or "/nowhere"),
            "_MILLSTREAM_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["millstream", *words]),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ended.stderr == ""
    return ended.stdout.split()


def test_nouns_and_verbs() -> None:
    assert offered("gr") == ["group"]
    assert "reset-offsets" in offered("group", "")
    assert offered("group", "reset-offsets", "--to-l") == ["--to-latest"]


@deep
def test_topics_and_groups_of_the_cluster(on: On) -> None:
    assert offered("topic", "describe", "-b", on.bootstrap, "fl") == ["flags", "flights"]
    assert offered("group", "members", "-b", on.bootstrap, "") == ["readers"]
    assert offered("config", "describe", "-b", on.bootstrap, "topic", "w") == ["weather"]


@deep
def test_a_cluster_that_is_away_offers_nothing_and_says_nothing() -> None:
    assert offered("topic", "describe", "-b", f"127.0.0.1:{free_port()}", "fl") == []


def test_connectors() -> None:
    assert offered("connect", "config", "FilesS") == ["FilesSink", "FilesSource"]


def test_profiles(tmp_path: Path) -> None:
    folder = tmp_path / "millstream" / "profiles"
    folder.mkdir(parents=True)
    (folder / "staging.properties").touch()
    assert offered("topic", "list", "--profile", "st", folder=tmp_path) == ["staging"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_the_shells(shell: str, tmp_path: Path) -> None:
    script = invoke("completion", shell)
    assert script.exit_code == 0
    assert f"complete_{shell}" in script.stdout
    if (program := shutil.which(shell)) is not None:
        file = tmp_path / "script"
        file.write_text(script.stdout)
        subprocess.run([program, "-n", file], check=True, timeout=60)
