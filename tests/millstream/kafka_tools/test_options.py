"""Every option that the Java tools' `--help` lists is taken, and no other."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from millstream.kafka_tools.table import KAFKA_TOOLS
from tests.millstream.kafka_tools.players import JAVA_CLASSES, JavaTools, OurTools
from tests.millstream.kafka_tools.transcript import Outcome
from tests.support import java
from tests.support.depth import deep

GOLDEN = Path(__file__).parent / "options.json"
"""By tool, the names that Java's help has in its left column."""

NAMES = re.compile(r"^ {0,2}(--?[a-zA-Z][\w.-]*(?:, --?[a-zA-Z][\w.-]*)*)", re.MULTILINE)


def listed(outcome: Outcome) -> list[str]:
    text = outcome.stdout + outcome.stderr
    return sorted({name for names in NAMES.findall(text) for name in names.split(", ")})


@pytest.mark.parametrize("tool", KAFKA_TOOLS)
def test_options(tool: str) -> None:
    assert listed(OurTools().run([tool, "--help"], "")) == json.loads(GOLDEN.read_text())[tool]


@deep
@java.needs_javac
def test_the_golden_options_are_javas(tmp_path: Path) -> None:
    with JavaTools(tmp_path) as tools:
        options = {tool: listed(tools.run([tool, "--help"], "")) for tool in JAVA_CLASSES}

    if os.environ.get("REWRITE"):
        GOLDEN.write_text(json.dumps(options, indent=2) + "\n")
    assert options == json.loads(GOLDEN.read_text())
