"""A new plugin passes its own tests and the strict type check, as it is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from connect.authoring.new_plugin import write_plugin
from connect.errors import ConfigError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("role", ["source", "sink"])
def test_a_new_plugin_passes_its_tests(role, tmp_path):
    paths = write_plugin("order-book", role, tmp_path)
    assert [path.name for path in paths] == ["order_book.py", "test_order_book.py", "order_book.properties"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "skipped" not in ran.stdout.splitlines()[-1]


def test_new_plugins_are_typed(tmp_path):
    modules = [write_plugin(f"new_{role}", role, tmp_path)[0].name for role in ("source", "sink")]
    strictly = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    env = {**os.environ, "MYPYPATH": str(ROOT)}  # mypy does not look into editable installs
    command = [sys.executable, "-m", "mypy", *strictly, *modules]
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", ["2fast", "class", "a b", ""])
def test_a_name_that_is_no_modules(name, tmp_path):
    with pytest.raises(ConfigError, match="must be a name for a Python module"):
        write_plugin(name, "source", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_overwritten(tmp_path):
    (tmp_path / "test_orders.py").write_text("mine")
    with pytest.raises(ConfigError, match=r"test_orders\.py exists already"):
        write_plugin("orders", "sink", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["test_orders.py"]
