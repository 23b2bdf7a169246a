"""The page of the transforms names each class with its keys, and its example works."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from connect.transforms import PREDICATES, TRANSFORMS

PAGE = (Path(__file__).parents[3] / "docs" / "transforms.md").read_text()


@pytest.mark.parametrize("name", [*TRANSFORMS, *PREDICATES])
def test_the_page_has_the_keys(name: str) -> None:
    plugin = (TRANSFORMS | PREDICATES)[name]
    row = next(line for line in PAGE.splitlines() if re.match(rf"\| `{name.partition('$')[0]}[`$]", line))
    keys = set(re.findall(r"`([a-z.]+)`", row))
    assert plugin.CONFIG.settings().keys() <= keys


def test_the_example_works(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, test = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    module = ModuleType("my_module")
    exec(plugin, module.__dict__)
    monkeypatch.setitem(sys.modules, "my_module", module)
    exec(test, {})
