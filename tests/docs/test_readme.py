"""README and docs say what is so: snippets run, commands parse, configs are accepted, links lead on."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from connect.config import SinkConfig, SourceConfig, unknown_keys
from connect.config.rest import RestConfig
from connect.distributed import DistributedConfig
from connect.runtime import WorkerConfig, connector_class
from connect.runtime.plugins import connector_type
from kafka_client.java_properties import parse_properties
from logd.config.load import from_properties
from millstream.main import app
from mirror.config import parse_links
from streams import KafkaStreams
from tests.docs.pages import PAGES, ROOT, Block, all_blocks, blocks

PYTHON = all_blocks("python")
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
PREFIXES = (*WorkerConfig.PREFIXES, "topic.creation.", "spark.")
WORKER_PREFIXES = (*WorkerConfig.PREFIXES, *RestConfig.PREFIXES)


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.place)
def test_python_compiles_and_its_imports_resolve(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text, block.place)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                assert hasattr(module, alias.name), f"{block.place}: {node.module} has no {alias.name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs(page: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Blocks of a page run one after the other in one module, and so do the tests in them."""
    monkeypatch.setattr(KafkaStreams, "run", lambda self: None)
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(page, "python"):
        if block.is_run and not block.is_for_pytest:
            exec(compile(block.text, block.place, "exec"), module.__dict__)
            for test in [value for name, value in vars(module).items() if name.startswith("test_")]:
                call(test, request)
                delattr(module, test.__name__)


def call(test: Any, request: pytest.FixtureRequest) -> None:
    names = test.__code__.co_varnames[: test.__code__.co_argcount]
    test(*(request.getfixturevalue(name) for name in names))


def commands() -> list[tuple[Block, str]]:
    return [
        (block, line)
        for block in all_blocks("sh")
        for line in block.text.replace("\\\n", " ").splitlines()
        if line and not line.startswith("#")
    ]


@pytest.mark.parametrize(("block", "line"), commands(), ids=lambda each: getattr(each, "place", each))
def test_commands_parse(block: Block, line: str) -> None:
    words = shlex.split(re.split(r" [|>] ", line)[0], comments=True)
    while "=" in words[0]:
        words.pop(0)
    words = words[:-1] if words[-1] == "&" else words
    program = Path(words.pop(0)).name
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
    elif program == "python":
        assert words[0] == "-m" or (ROOT / words[0]).is_file(), line
    elif program == "millstream":
        parse(words)
    else:
        assert program in ("pip", "kcat", "curl", "cp", "mv"), f"{block.place}: what is {program}?"


def parse(words: list[str]) -> None:
    """Down to the subcommand, then its arguments; click's UsageError for what it does not know."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "get_command"):
        name = words.pop(0)
        command = command.get_command(typer.Context(command), name)
        assert command is not None, f"no command {name}"
    command.make_context("millstream", words)


@pytest.mark.parametrize("block", all_blocks("properties"), ids=lambda block: block.place)
def test_configs_are_accepted(block: Block) -> None:
    settings: Mapping[str, str] = parse_properties(block.text)
    if "connector.class" in settings:
        plugin = connector_class(settings["connector.class"])
        declarations = [SourceConfig if connector_type(plugin) == "source" else SinkConfig, plugin.CONFIG]
        for declaration in declarations:
            declaration.parse(settings)
        assert unknown_keys(declarations, settings, (*PREFIXES, *plugin.CONFIG.PREFIXES)) == {}
    elif "clusters" in settings:
        assert parse_links(settings)
    elif "group.id" in settings:
        DistributedConfig.parse(settings)
        assert unknown_keys([DistributedConfig, RestConfig], settings, DistributedConfig.PREFIXES) == {}
    elif settings.keys() & {"offset.storage.file.filename", "listeners", "value.converter"}:
        WorkerConfig.parse(settings)
        assert unknown_keys([WorkerConfig, RestConfig], settings, WORKER_PREFIXES) == {}
    else:
        assert from_properties(settings).warnings == []


@pytest.mark.parametrize("block", all_blocks("json"), ids=lambda block: block.place)
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^):]*))?\)", page.read_text(encoding="utf-8")):
        place = page.parent / target if target else page
        assert place.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(place), f"{page.name} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub and the site give to a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("place", sorted(set(re.findall(r"`([\w/]+/(?:\w+\.py)?)`", DESIGN))))
def test_places_named_by_the_design_exist(place: str) -> None:
    assert (ROOT / place).exists(), f"docs/design.md names {place}"


def test_the_design_shows_the_layers_of_the_import_contracts() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        if contract["type"] == "layers":
            (title,) = contract.get("containers", ["packages"])
            assert f"{title:<18}{' > '.join(contract['layers'])}\n" in DESIGN
