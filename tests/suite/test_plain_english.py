"""The check of English in `make check`: what it finds, and that its allow-list cannot grow."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "plain_english.py"

PLAIN = '''
"""A module."""

def size(folder: str) -> int:
    """Return the size of `folder` in bytes."""
    # The index is counted as well, since it takes as much room as the records.
    response = 1
    return response
'''
BROKEN = '''
"""A module."""

def size(given: str) -> int:
    """Of those there are."""
    # Whoever asks.
    found = 1
    return found

def limit() -> None:
    """The limit."""
'''
PROPERTY = '''
class Log:
    """A log."""

    @property
    def size(self) -> int:
        """The size."""
'''


@pytest.fixture
def checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("plain_english", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "ALLOWED", tmp_path / "allowed.txt")
    monkeypatch.setattr(module, "files", lambda arguments: sorted(tmp_path.glob("*.py")))
    return module


def test_plain_english_has_no_findings(checker: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    assert list(checker.findings_of(tmp_path / "plain.py")) == []


def test_findings_have_their_rule_and_line(checker: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    findings = sorted((each.line, each.rule) for each in checker.findings_of(tmp_path / "broken.py"))
    assert findings == [
        (4, "bare-name"),
        (5, "docstring-start"),
        (6, "word"),
        (7, "bare-name"),
        (11, "docstring-start"),
    ]


def test_a_long_sentence_is_found_in_a_page_but_not_in_its_code(checker: ModuleType, tmp_path: Path) -> None:
    long = " ".join(["word"] * 26)
    page = tmp_path / "page.md"
    page.write_text(f"# {long}\n\n{long}.\n\n```\n{long}\n```\n\n| {long} |\n")
    assert [(each.line, each.rule) for each in checker.findings_of(page)] == [(3, "long-sentence")]


def test_the_allow_list_only_shrinks(checker: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(BROKEN)
    assert checker.main([]) == 1
    assert checker.main(["--shrink"]) == 0  # there is none yet: it begins with today's counts
    assert checker.main([]) == 0
    file.write_text(BROKEN.replace("found", "result"))
    assert checker.main([]) == 1, "a count that is too high is lowered"
    assert checker.main(["--shrink"]) == 0
    assert checker.main([]) == 0
    file.write_text(BROKEN)
    assert checker.main(["--shrink"]) == 0
    assert checker.main([]) == 1, "it does not grow again"


def test_a_property_may_begin_with_a_noun(checker: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "log.py").write_text(PROPERTY)
    assert list(checker.findings_of(tmp_path / "log.py")) == []
