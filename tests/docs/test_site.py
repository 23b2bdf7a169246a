"""The site that `make docs` builds: all pages are in it, without a warning of Sphinx's."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT
from tests.support.depth import deep

DOCS = ROOT / "docs"


def linked(page: str) -> set[Path]:
    return {DOCS / target for target in re.findall(r"\]\(([a-z/-]+\.md)\)", (DOCS / page).read_text())}


def test_the_index_links_to_every_page() -> None:
    assert {page for page in PAGES if page.parent == DOCS} - {DOCS / "index.md"} <= linked("index.md")


def test_the_page_about_streams_links_to_its_parts() -> None:
    assert linked("streams.md") == {page for page in PAGES if page.parent == DOCS / "streams"}


@deep
@pytest.mark.skipif(
    find_spec("sphinx") is None, reason="the site needs Sphinx: pip install 'millstream[docs]'"
)
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    arguments = ["-b", "html", "-d", str(tmp_path / "doctrees"), "docs", str(tmp_path / "site")]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in PAGES if page.is_relative_to(DOCS)}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}
    reference = (site / "api" / "streams.html").read_text()
    assert "flat_map_values" in reference
