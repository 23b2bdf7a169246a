"""CRC-32C by the extension alone, and by the package where that has it elsewhere."""

from __future__ import annotations

import importlib
import sys

import crc32c as package
import pytest

from kafka_client.records import crc

CHECK = 0xE3069283
"""The CRC-32C of "123456789", the check value in every description of the algorithm."""


def test_it_is_the_packages_own() -> None:
    assert crc.crc32c(b"123456789") == CHECK
    assert crc.crc32c(b"56789", crc.crc32c(b"1234")) == CHECK
    assert package.crc32c(b"123456789") == CHECK


def test_the_package_is_taken_where_the_extension_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, crc._EXTENSION, raising=False)
    monkeypatch.setattr("importlib.machinery.PathFinder.find_spec", lambda *_: None)
    spec = importlib.util.spec_from_file_location("crc_anew", crc.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.crc32c is package.crc32c
