"""A user's own folder or module named `plugins` hides none of ours, and stays usable."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
sys.path[:0] = [".", sys.argv[1]]
from connect.runtime.plugins import connector_class
print(connector_class("FilesSink").__module__)
print(connector_class("plugins.blackhole:BlackholeSink").__module__)
if len(sys.argv) > 2:
    print(connector_class(sys.argv[2]).__module__)
"""
OWN = "from connect.api import SinkConnector\nclass Mine(SinkConnector):\n    pass\n"


@pytest.mark.parametrize(
    ("files", "reference"),
    [
        ({}, None),
        ({"plugins/__init__.py": ""}, None),
        ({"plugins/__init__.py": "", "plugins/mine.py": OWN}, "plugins.mine:Mine"),
        ({"plugins/__init__.py": OWN}, "plugins:Mine"),
        ({"plugins/mine.py": OWN}, "plugins.mine:Mine"),
        ({"plugins.py": OWN}, "plugins:Mine"),
        ({"plugins/__init__.py": "raise ValueError"}, None),
    ],
)
def test_our_plugins_and_the_users_own_are_found(tmp_path, files, reference):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    arguments = [sys.executable, "-c", SCRIPT, str(ROOT), *([reference] if reference else [])]
    ended = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    own = [reference.partition(":")[0]] if reference else []
    assert ended.stdout.split() == ["plugins.files.sink", "plugins.blackhole.sink", *own]
