"""Apache Kafka's own Java classes and tools, in the folder that KAFKA_LIBS names; Kafka 3's in KAFKA_3_LIBS'
(see .ci/run).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from millstream.zookeeper.class_archive import ClassArchive
from tests.support.java_programs import classes_of

LIBS = os.environ.get("KAFKA_LIBS", "")
LIBS_3 = os.environ.get("KAFKA_3_LIBS", "")
NEEDS = "KAFKA_LIBS does not name a folder"
"""How the reasons begin why such a test is skipped."""

needs_kafka = pytest.mark.skipif(
    not (LIBS and shutil.which("java")),
    reason=f"{NEEDS} of Kafka's jars, or no java",
)
"""Marks tests that run Kafka's tools or brokers."""

needs_kafka_3 = pytest.mark.skipif(
    not (LIBS_3 and shutil.which("java")),
    reason=f"{NEEDS}: KAFKA_3_LIBS of Kafka 3's jars, or no java",
)
"""Marks tests that run a broker of Apache Kafka 3."""

needs_javac = pytest.mark.skipif(
    not (LIBS and shutil.which("javac")),
    reason=f"{NEEDS} of Kafka's jars, or no javac",
)
"""Marks tests that run the programs in tests/java."""


needs_javac_3 = pytest.mark.skipif(
    not (LIBS_3 and shutil.which("javac")),
    reason=f"{NEEDS}: KAFKA_3_LIBS of Kafka 3's jars, or no javac",
)
"""Marks tests that run the programs in tests/java which use Kafka 3's classes."""


def needs_jar(name: str) -> pytest.MarkDecorator:
    """Marks tests that run programs in tests/java which use this one of Kafka's jars."""
    is_there = bool(LIBS) and any(Path(LIBS).glob(f"{name}-[0-9]*.jar"))
    return pytest.mark.skipif(
        not (is_there and shutil.which("javac")),
        reason=f"{NEEDS} with {name}'s jar (see .ci/kafka-pom.xml), or no javac",
    )


QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", "-Xmx512m")
"""Short-lived processes spend their time on starting."""

SECONDS = 300.0
"""How long one may take, on a machine that has much else to do."""


@cache
def archive(libs: str) -> ClassArchive:
    """Kafka's classes, as a broker of these jars has written them."""
    return ClassArchive("kafka", f"{libs}/*")


def command(
    main: str,
    *arguments: str,
    options: Sequence[str] = (),
    shared: Sequence[str] | None = None,
    libs: str = LIBS,
) -> list[str]:
    """Return the command line of one of Kafka's classes.

    ``shared`` are options of `archive` for class data sharing, instead of those of `use`.
    """
    classes = archive(libs).use() if shared is None else shared
    return ["java", *QUICK, *classes, *options, "-cp", f"{libs}/*", main, *arguments]


def run_tool(
    main: str, *arguments: str, cwd: Path | None = None, libs: str = LIBS
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's classes to its end, whatever its status."""
    line = command(main, *arguments, libs=libs)
    return subprocess.run(line, capture_output=True, encoding="utf-8", timeout=SECONDS, cwd=cwd)


def program(
    name: str,
    *arguments: str,
    libs: str = LIBS,
    options: Sequence[str] = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=error",),
) -> list[str]:
    """Compile a program of tests/java, and return its command line."""
    class_path = f"{libs}/*{os.pathsep}{classes_of(name, libs)}"
    return ["java", *QUICK, *options, "-cp", class_path, name, *arguments]


def run_program(name: str, *arguments: str, libs: str = LIBS, stdin: str = "") -> str:
    """Run a program of tests/java and return its output. Raises CalledProcessError if it fails."""
    line = program(name, *arguments, libs=libs)
    return subprocess.run(
        line, input=stdin, stdout=subprocess.PIPE, encoding="utf-8", timeout=SECONDS, check=True
    ).stdout


def run_sections(name: str, *arguments: str) -> dict[str, str]:
    """Run a program and return its output by section: each begins with a line `== NAME`."""
    printed = run_program(name, *arguments)
    assert printed.startswith("== ")
    pairs = (section.partition("\n") for section in printed.removeprefix("== ").split("\n== "))
    sections = {title: text for title, _, text in pairs}
    last = next(reversed(sections))
    return {title: text if title == last else text + "\n" for title, text in sections.items()}


def dump_log_segments(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Kafka's DumpLogSegments. What 4.4 says of every file that does not begin at 0 is left out: its
    first record follows nothing, which the tool takes for offset -1.
    """
    done = run_tool("org.apache.kafka.tools.DumpLogSegments", *arguments, cwd=cwd)
    done.stderr = re.sub(r"^  -1 is followed by \d+\n", "", done.stderr, flags=re.MULTILINE)
    done.stderr = re.sub(r"^Non-consecutive offsets in .*\n(?!  )", "", done.stderr, flags=re.MULTILINE)
    return done
