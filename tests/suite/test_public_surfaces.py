"""The names that docs/compatibility.md promises, module by module: a change shows in review.

REWRITE=1 writes the list again. tests/kafka_client/test_public_surface.py has the names of `kafka_client`,
with their signatures.
"""

from __future__ import annotations

import os
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from kafka_client.cluster.versions import SOFTWARE_VERSION

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
GOLDEN = Path(__file__).parent / "golden" / "public_surfaces.txt"
MODULES = (
    "kafka_client",
    "kafka_client.records",
    "connect.api",
    "connect.converters",
    "connect.runtime",
    "connect.testing",
    "streams",
    "streams.serdes",
    "streams.testing",
    "plugins.files",
    "plugins.spark",
    "millstream",
    "millstream.testing",
)


LISTED_ELSEWHERE = ("kafka_client",)


def names_of(module: str) -> list[str]:
    return sorted(import_module(module).__all__)


def test_the_names_are_those_that_were_promised() -> None:
    modules = [module for module in MODULES if module not in LISTED_ELSEWHERE]
    text = "".join(f"{module}.{name}\n" for module in modules for name in names_of(module))
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_the_page_lists_the_modules() -> None:
    paragraph = PAGE.read_text().partition("Names in the `__all__`")[2].partition("\n\n")[0]
    assert re.findall(r"`([a-z_.]+)`", paragraph) == list(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_there(module: str) -> None:
    for name in names_of(module):
        assert hasattr(import_module(module), name)


def test_the_client_says_the_version_that_is_installed() -> None:
    project = tomllib.loads((PAGE.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["version"] == SOFTWARE_VERSION
