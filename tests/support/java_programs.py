"""The programs in tests/java, compiled below `build`, once for all tests that run them: compiling one takes
ten times as long as starting it.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "java"
BUILT = SOURCES.parent.parent / "build" / "java"
OF_KAFKA_3 = ("ClusterMetadata", "ControllerRules", "Placement", "Znodes", "ZooKeeperExchange")
"""Programs that use classes which Kafka 4 does not have."""
QUICK = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none", "-nowarn", "-encoding", "UTF-8")


@cache
def classes_of(name: str, libs: str) -> Path:
    """Return the folder with a program's classes, compiled if need be.

    Raises AssertionError with the compiler's output.
    """
    is_of_3 = name in OF_KAFKA_3
    sources = [path for path in sorted(SOURCES.glob("*.java")) if (path.stem in OF_KAFKA_3) == is_of_3]
    folder = BUILT / _digest(sources, libs)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / f"{name}.class").exists():
            _compile(sources, libs, folder)
        if not (folder / f"{name}.class").exists():  # another one needs a jar that is not there
            done = _compile([SOURCES / f"{name}.java"], libs, folder)
            assert done.returncode == 0, done.stderr
    return folder


def _compile(sources: Iterable[Path], libs: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["javac", *QUICK, "-cp", f"{libs}/*", "-d", str(folder), *map(str, sources)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8")


def _digest(sources: Iterable[Path], libs: str) -> str:
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.read_bytes())
    for jar in sorted(Path(libs).glob("*.jar")):
        digest.update(jar.name.encode())
    return digest.hexdigest()[:16]
