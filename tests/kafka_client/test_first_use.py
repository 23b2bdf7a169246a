"""Packages whose names are imported at first use: their tables, which types do not check."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from kafka_client.first_use import at_first_use

PACKAGES = ["kafka_client", "kafka_client.records", "logd.replication", "logd.storage", "logd.transactions"]


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_imported_is_what_is_said(name: str) -> None:
    """Lazy packages list their modules twice: in a table for run time, in imports for the type checker."""
    package = import_module(name)
    assert package.__file__ is not None
    names = [one for some in package._MODULES.values() for one in some]
    assert sorted(names) == sorted(package.__all__)
    tree = ast.parse(Path(package.__file__).read_text())
    (checked,) = (
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imported = {
        node.module: [alias.name for alias in node.names]
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
    }
    assert {module: list(some) for module, some in package._MODULES.items()} == imported


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_found(name: str) -> None:
    package = import_module(name)
    for exported in package.__all__:
        assert getattr(package, exported) is not None


def test_other_names_are_not_there() -> None:
    find = at_first_use("logd", {"kafka_client.errors": ("KafkaError",)})
    with pytest.raises(AttributeError, match="module 'logd' has no attribute 'Kafka'"):
        find("Kafka")
