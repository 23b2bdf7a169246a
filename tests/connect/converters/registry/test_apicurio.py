"""Converters with Apicurio's registry, by its API that is compatible with Confluent's.

APICURIO_HOME names a folder with quarkus-run.jar (see .ci/apicurio-pom.xml), APICURIO_JAVA a java from
21 on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from connect.converters import make_converter
from connect.errors import DataError
from tests.connect.converters.test_avro import ROW, VALUE
from tests.support.ports import free_port
from tests.support.waiting import wait_for

HOME = os.environ.get("APICURIO_HOME", "")
JAVA = os.environ.get("APICURIO_JAVA") or shutil.which("java") or ""
START_SECONDS = 300.0

pytestmark = [
    pytest.mark.skipif(
        not (JAVA and HOME and Path(HOME, "quarkus-run.jar").exists()),
        reason="APICURIO_HOME names no folder of Apicurio's registry (see .ci/apicurio-pom.xml), or no java",
    ),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    port = free_port()
    address = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    options = ["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1"]
    with (tmp_path_factory.mktemp("apicurio") / "log").open("wb") as log:
        process = subprocess.Popen(
            [JAVA, *options, f"-Dquarkus.http.port={port}", "-jar", "quarkus-run.jar"],
            cwd=HOME,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

        def answers() -> bool:
            assert process.poll() is None, Path(log.name).read_text()[-3000:]
            try:
                with urllib.request.urlopen(f"{address}/subjects", timeout=5):
                    return True
            except OSError:
                return False

        try:
            wait_for(answers, START_SECONDS)
            yield address
        finally:
            process.terminate()
            process.wait()


KINDS = [("avro", {}), ("json-schema", {}), ("protobuf", {"optional.for.nullables": "true"})]


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_values_both_ways_and_schemas_looked_up(url, kind, settings):
    def converter(**more):
        config = {"schema.registry.url": url, **settings, **{k.replace("_", "."): v for k, v in more.items()}}
        return make_converter("value.converter", kind, config)

    with pytest.raises(DataError, match="answers 404"):
        converter(auto_register_schemas="false").from_connect(kind, ROW, VALUE)
    data = converter().from_connect(kind, ROW, VALUE)
    assert converter().to_connect(kind, data).value == VALUE
    assert converter(auto_register_schemas="false").from_connect(kind, ROW, VALUE) == data
    latest = converter(auto_register_schemas="false", use_latest_version="true")
    assert latest.from_connect(kind, ROW, VALUE) == data


def test_an_unknown_id_is_a_bad_record(url):
    avro = make_converter("value.converter", "avro", {"schema.registry.url": url})
    with pytest.raises(DataError, match=r"schema 999999 cannot be read: .* 404"):
        avro.to_connect("t", b"\0" + (999_999).to_bytes(4, "big"))
