"""Apache Kafka's own Java classes and tools. KAFKA_LIBS names the folder of its jars (see .ci/run)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

LIBS = os.environ.get("KAFKA_LIBS", "")
PROGRAMS = Path(__file__).parent.parent / "java"

needs_kafka = pytest.mark.skipif(
    not (LIBS and shutil.which("java")),
    reason="KAFKA_LIBS does not name a folder of Kafka's jars, or no java",
)
"""Marks tests that run Kafka's tools or brokers."""

needs_javac = pytest.mark.skipif(
    not (LIBS and shutil.which("javac")),
    reason="KAFKA_LIBS does not name a folder of Kafka's jars, or no javac",
)
"""Marks tests that run the programs in tests/java."""

needs_kafka_streams = pytest.mark.skipif(
    not (LIBS and any(Path(LIBS).glob("kafka-streams-[0-9]*.jar")) and shutil.which("javac")),
    reason="KAFKA_LIBS does not name a folder with Kafka Streams' jar, or no javac",
)
"""Marks tests that run programs of Kafka Streams."""

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", "-Xmx512m")
"""Short-lived processes spend their time on starting."""


def command(main: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
    """The command line of one of Kafka's classes."""
    return ["java", *QUICK, *options, "-cp", f"{LIBS}/*", main, *arguments]


def run_tool(main: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's classes to its end, whatever its status."""
    line = command(main, *arguments)
    return subprocess.run(line, capture_output=True, encoding="utf-8", timeout=100, cwd=cwd)


def program(name: str, *arguments: str) -> list[str]:
    """The command line of a program in tests/java."""
    return ["java", *QUICK, "-cp", f"{LIBS}/*", str(PROGRAMS / f"{name}.java"), *arguments]


def run_program(name: str, *arguments: str) -> str:
    """What a program in tests/java prints; CalledProcessError if it fails."""
    line = program(name, *arguments)
    return subprocess.run(line, stdout=subprocess.PIPE, encoding="utf-8", timeout=100, check=True).stdout


def dump_log_segments(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Kafka's DumpLogSegments."""
    return run_tool("kafka.tools.DumpLogSegments", *arguments, cwd=cwd)
