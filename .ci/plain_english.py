"""Check the English of docstrings, comments, names and pages by the rules of CONTRIBUTING.md.

    python .ci/plain_english.py            fail where a file breaks a rule more often than the allow-list says
    python .ci/plain_english.py PATH ...   print every finding in these files and folders
    python .ci/plain_english.py --shrink   lower the allow-list to today's counts; it never grows

The allow-list (.ci/plain_english.txt) has a line for each file and rule: how many findings are left from
before the rule. New files have none.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = ROOT / ".ci" / "plain_english.txt"
PACKAGES = (
    "benchmarks",
    "connect",
    "examples",
    "kafka_client",
    "logd",
    "millstream",
    "mirror",
    "plugins",
    "pyspark_millstream",
    "streams",
    "tests",
)
PAGES = ("README.md", "docs")
GENERATED = ("docs/cli.md", "docs/connectors.md", "docs/logd-settings.md")
WORDS_MAX = 25
"""Words of a sentence."""

VAGUE_STARTS = frozenset(
    ("Of", "Those", "That", "What", "As", "Whoever", "Whose", "They", "It", "One", "Some")
)
"""No docstring begins with these: the reader has to find out what they stand for."""
NOT_VERBS = frozenset(
    (
        *(
            "The",
            "A",
            "An",
            "All",
            "Any",
            "Both",
            "Each",
            "Every",
            "Few",
            "If",
            "In",
            "No",
            "None",
            "On",
            "Only",
        ),
        *("How", "This", "These", "To", "Two", "Where", "Whether", "When", "Which", "Who", "With", "Without"),
    )
)
"""Nor does a function's, which begins with a verb."""
VERBS = frozenset((ROOT / ".ci" / "verbs.txt").read_text().split())
"""The verbs that functions' docstrings begin with. Add one that is missing, if it is a verb."""
BARE_PARTICIPLES = frozenset(
    (
        *("found", "given", "wanted", "held", "asked", "known", "told", "came"),
        *("said", "kept", "heard", "taken", "begun", "gone", "seen"),
    )
)
"""A name says what something is, not that something has happened."""
UNUSED = (
    (r"whoever", "name the caller"),
    (r"log folders?", "log directory"),
    (r"embedded (?:node|broker)s?", "standalone broker"),
    (r"brokers? among (?:others|several)|among (?:other brokers|others)", "in a cluster"),
    (r"(?:broker|node)s? by (?:itself|themselves)", "standalone"),
    (r"tells? of|told of|telling of", "reports"),
    (r"stands? for", "is"),
    (r"look(?:s|ed|ing)? after", "manage"),
    (r"lets? go|letting go", "release"),
    (r"anew", "again"),
    (r"of a kind", "name it"),
)
_UNUSED = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), better) for pattern, better in UNUSED]


class Finding(NamedTuple):
    """A place where a rule is broken."""

    path: str
    line: int
    rule: str
    text: str


def findings_of(path: Path) -> Iterator[Finding]:
    """Yield what a file breaks."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text()
    if path.suffix == ".md":
        for line, prose in _paragraphs(text):
            yield from _prose(name, line, prose)
        return
    tree = ast.parse(text)
    for node in ast.walk(tree):
        yield from _docstring(name, node)
        for line, word in _names(node):
            if word.strip("_") in BARE_PARTICIPLES:
                yield Finding(name, line, "bare-name", word)
    for line, prose in _comments(text):
        yield from _prose(name, line, prose)


def _docstring(path: str, node: ast.AST) -> Iterator[Finding]:
    """Yield findings of a module's, class's or function's docstring, and of the string below a field."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    for place, statement in enumerate(body):
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            continue
        text = statement.value.value
        if not isinstance(text, str):
            continue
        yield from _prose(path, statement.lineno, text)
        words = text.split()
        if not words:
            continue
        first = words[0].rstrip(",:;.")
        if first in VAGUE_STARTS or (place == 0 and first in NOT_VERBS and _is_function(node)):
            yield Finding(path, statement.lineno, "docstring-start", " ".join(words[:8]))
        elif place == 0 and first not in VERBS and not path.startswith("tests/") and _is_function(node):
            yield Finding(path, statement.lineno, "docstring-verb", " ".join(words[:8]))


def _is_function(node: ast.AST) -> bool:
    """Return True if `node` is a function that is called as one: neither a property nor a test.

    A test's docstring says what holds, not what the test does.
    """
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("test_"):
        return False
    decorators = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
    # Typer shows a callback's docstring as the help of its group.
    return not decorators & {"property", "cached_property", "fixture", "setter", "callback()"}


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield names that `node` gives to something, with their lines."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.lineno, node.id
    elif isinstance(node, ast.arg):
        yield node.lineno, node.arg
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.lineno, node.name.lower() if isinstance(node, ast.ClassDef) else node.name
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.lineno, node.attr


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield runs of comment lines as one text, with the first's line. Comments beside code stand alone."""
    first, last, parts = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(("#!", "# type:", "# noqa")):
            continue
        is_alone = not token.line[: token.start[1]].strip()
        if (token.start[0] != last + 1 or not is_alone) and parts:
            yield first, " ".join(parts)
            parts = []
        if not parts:
            first = token.start[0]
        last = token.start[0] if is_alone else -1
        parts.append(token.string.lstrip("# "))
    if parts:
        yield first, " ".join(parts)


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield a page's paragraphs and items with their lines, without code, tables and headings."""
    first, parts, is_code = 0, list[str](), False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        ends = is_code or not line.strip() or line.lstrip().startswith(("```", "~~~", "|", "#", "<"))
        begins = re.match(r"\s*(?:[-*]|\d+\.) ", line) is not None
        if (ends or begins) and parts:
            yield first, " ".join(parts)
            parts = []
        if not ends:
            if not parts:
                first = number
            parts.append(line.strip())
    if parts:
        yield first, " ".join(parts)


def _prose(path: str, line: int, text: str) -> Iterator[Finding]:
    """Yield long sentences and words that are not used."""
    for paragraph in re.split(r"\n\s*\n", text):
        if "──" in paragraph or "->" in paragraph:
            continue  # a drawing
        for sentence in re.split(r"(?<=[.!?:;])\s+|\n\s*[-*] |\n {4,}\S", paragraph):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > WORDS_MAX:
                yield Finding(path, line, "long-sentence", f"{len(words)} words: {' '.join(words[:9])} …")
        for pattern, better in _UNUSED:
            for match in pattern.finditer(paragraph):
                yield Finding(path, line, "word", f"{match.group()!r}: {better}")


def files(arguments: list[str]) -> list[Path]:
    """Return the files that are checked, or those below the paths that are named."""
    command = ["git", "ls-files", "--", *(arguments or (*PACKAGES, *PAGES))]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    return [ROOT / name for name in listed if name.endswith((".py", ".md")) and name not in GENERATED]


def read_allowed() -> Counter[tuple[str, str]]:
    """Return how many findings each file may have, by path and rule."""
    allowed = Counter[tuple[str, str]]()
    if ALLOWED.exists():
        for line in ALLOWED.read_text().splitlines():
            path, rule, count = line.split()
            allowed[path, rule] = int(count)
    return allowed


def main(arguments: list[str]) -> int:
    """Check, print or shrink; return the exit status."""
    shrinks = arguments == ["--shrink"]
    findings = [each for path in files([] if shrinks else arguments) for each in findings_of(path)]
    if arguments and not shrinks:
        for each in findings:
            print(f"{each.path}:{each.line}: {each.rule}: {each.text}")
        return bool(findings)
    counts = Counter((each.path, each.rule) for each in findings)
    allowed = read_allowed()
    if shrinks:
        lower = {key: min(count, allowed[key]) for key, count in counts.items()} if allowed else counts
        lines = (f"{path} {rule} {count}\n" for (path, rule), count in sorted(lower.items()) if count)
        ALLOWED.write_text("".join(lines))
        print(f"{sum(lower.values())} findings are left")
        return 0
    status = 0
    for key, count in sorted(counts.items()):
        if count > allowed[key]:
            status = 1
            print(f"{key[0]}: {key[1]}: {count} findings, {allowed[key]} are allowed:")
            for each in findings:
                if (each.path, each.rule) == key:
                    print(f"  {each.path}:{each.line}: {each.text}")
    stale = [key for key, count in allowed.items() if counts[key] < count]
    if stale and not status:
        print(f"{len(stale)} counts of {ALLOWED.name} are too high: python .ci/plain_english.py --shrink")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
