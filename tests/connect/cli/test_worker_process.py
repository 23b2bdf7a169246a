"""The settings of the commands that run a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.cli.worker_process import worker_settings
from kafka_client.errors import ConfigError


def test_http_is_the_listener_of_the_rest_interface(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("listeners=http://:8083\ngroup.id=g\n")
    settings = worker_settings(file, ["group.id=h"], "127.0.0.1:7070")
    assert settings == {"listeners": "http://127.0.0.1:7070", "group.id": "h"}
    assert worker_settings(file, None, None)["listeners"] == "http://:8083"
    with pytest.raises(ConfigError, match="--http"):
        worker_settings(file, None, "7070")
