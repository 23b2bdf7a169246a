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

INDEX = (ROOT / "docs" / "index.md").read_text()


def test_the_index_links_to_every_page() -> None:
    linked = set(re.findall(r"\]\(([a-z-]+)\.md\)", INDEX))
    assert linked == {page.stem for page in PAGES if page.parent.name == "docs"} - {"index"}


@deep
@pytest.mark.skipif(
    find_spec("sphinx") is None, reason="the site needs Sphinx: pip install 'millstream[docs]'"
)
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    arguments = ["-b", "html", "-d", str(tmp_path / "doctrees"), "docs", str(tmp_path / "site")]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {path.stem for path in (tmp_path / "site").glob("*.html")}
    assert {page.stem for page in PAGES if page.parent.name == "docs"} <= pages
    reference = (tmp_path / "site" / "api" / "streams.html").read_text()
    assert "flat_map_values" in reference
