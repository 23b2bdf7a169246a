"""Sphinx's settings for `make docs`: the pages as they are, and an API reference from docstrings.

The pages are written for the repository, without directives. What only the site needs is added here: the
navigation, and a page for each public module (`api/`, not committed).
"""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent

project = "Millstream"
author = "The Millstream developers"
release = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
html_theme = "furo"
html_title = f"Millstream {release}"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
myst_heading_anchors = 4
# Docstrings have code in single backquotes, as pages do.
default_role = "code"
autodoc_member_order = "bysource"
# Links out of docs/ lead to files that the site does not have; a test checks them. A name that two public
# modules offer has two places. metrics.md leaves a level of headings out.
suppress_warnings = ["myst.header", "myst.xref_missing", "ref.python"]

GROUPS = {
    "Begin": ("tutorial", "parts", "glossary"),
    "How to": (
        *(
            "records-in-a-terminal",
            "testing",
            "kafka-tools",
            "cluster",
            "client",
            "arrow",
            *(
                "connect",
                "connect-distributed",
                "connect-rest",
                "connect-errors",
                "connect-exactly-once",
                "connect-operation",
                "connect-plugins",
                "transforms",
                "converters",
            ),
            *("connect-internal-topics", "files", "jdbc", "http", "test-connectors"),
            "streams",
            "mirror",
            "spark",
        ),
        *("security", "operation", "metrics", "backup", "scale"),
    ),
    "Reference": ("cli", "logd", "logd-settings", "connectors", "features", "compatibility", "api/index"),
    "Inside": ("design", "decisions/README", "compiled-modules", "development"),
}
"""The navigation: the same pages as in index.md."""


OPTION_PAGE = "streams-options"
"""The page of the keyword options that the methods of streams take as ``**options``."""


def public_modules() -> list[str]:
    """Return the modules that compatibility.md promises."""
    page = (HERE / "compatibility.md").read_text()
    return re.findall(r"`([a-z_.]+)`", page.partition("Names in the `__all__`")[2].partition("\n\n")[0])


def write_api_pages(app: Sphinx, config: Any) -> None:
    """Write a page for each public module."""
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    modules = public_modules()
    described: set[int] = set()
    for module in modules:
        names = {name: id(getattr(import_module(module), name)) for name in import_module(module).__all__}
        again = ", ".join(name for name, place in names.items() if place in described)
        described.update(names.values())
        directive = (
            f".. automodule:: {module}\n   :members:\n   :imported-members:\n   :exclude-members: {again}\n"
        )
        (folder / f"{module}.md").write_text(f"# {module}\n\n```{{eval-rst}}\n{directive}```\n")
    options = ".. automodule:: streams.dsl.keywords\n   :members:\n   :exclude-members: takes\n"
    (folder / f"{OPTION_PAGE}.md").write_text(
        f"# Keyword options of streams\n\n```{{eval-rst}}\n{options}```\n"
    )
    contents = "".join(f"- [{module}]({module}.md)\n" for module in (*modules, OPTION_PAGE))
    (folder / "index.md").write_text(f"# API reference\n\nThe public modules.\n\n{contents}")


def toctree(entries: list[str], caption: str = "") -> str:
    """Return a hidden table of contents."""
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return "\n```{toctree}\n" + options + "\n" + "\n".join(entries) + "\n```\n"


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the tables of contents that the navigation is made of."""
    if page == "index":
        source[0] += "".join(toctree(list(pages), caption) for caption, pages in GROUPS.items())
    elif page == "api/index":
        source[0] += toctree([*public_modules(), OPTION_PAGE])
    elif page == "streams":
        source[0] += toctree(re.findall(r"^\| .*\((streams/[a-z-]+)\.md\)", source[0], re.MULTILINE))
    elif page == "decisions/README":
        source[0] += toctree(sorted(path.stem for path in (HERE / "decisions").glob("0*.md")))


def mark_up(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Make reStructuredText of a docstring: indented blocks are code, and code may have a letter after it."""
    marked: list[str] = []
    is_code = False
    for line in lines:
        begins = line.startswith("    ") and not is_code and (not marked or not marked[-1].strip())
        if begins:
            marked += ["::", ""]
        is_code = begins or (is_code and (not line.strip() or line.startswith("    ")))
        marked.append(line if is_code else re.sub(r"(`+)([^`]+)\1(?=\w)", r"\1\2\1\\ ", line))
    lines[:] = marked


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("config-inited", write_api_pages)
    app.connect("source-read", add_navigation)
    app.connect("autodoc-process-docstring", mark_up)
