"""The generated pages are what the generators print."""

from __future__ import annotations

import runpy

import pytest

from logd.config import reference
from tests.docs.pages import ROOT

PAGES: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == PAGES[name], f"docs/{name} is not what the code says: run `make docs`"


def test_the_settings_page_holds_what_the_command_prints() -> None:
    assert reference.markdown() in PAGES["logd-settings.md"]
