"""Rows in each form that `-o` takes."""

from __future__ import annotations

import io
import json

import pytest
import yaml

from millstream.terminal.output import Format, show, show_one

ROWS = [
    {"name": "a\tb\nc", "count": 2, "there": True, "rack": None, "ids": [1, 2], "hidden": 7},
    {"name": "[bold]x[/]", "count": 30, "there": False, "rack": "r", "ids": [], "hidden": 8},
]
COLUMNS = ("name", "count", "there", "rack", "ids")


def printed(form: Format) -> str:
    out = io.StringIO()
    show(ROWS, form, COLUMNS, out)
    return out.getvalue()


def test_a_table_shows_its_columns_aligned_and_no_markup_is_obeyed() -> None:
    rows = [{"name": "[bold]x[/]", "count": 30, "there": False, "rack": None, "ids": []}]
    out = io.StringIO()
    show(rows, Format.TABLE, COLUMNS, out)
    header, line = out.getvalue().splitlines()
    assert header.split() == ["NAME", "COUNT", "THERE", "RACK", "IDS"]
    assert line.split() == ["[bold]x[/]", "30", "no", "-", "-"]
    assert header.index("COUNT") == line.index("30")


def test_a_plain_line_is_one_row_whatever_is_in_it() -> None:
    assert printed(Format.PLAIN) == "a\\tb\\nc\t2\tyes\t-\t1,2\n[bold]x[/]\t30\tno\tr\t-\n"


@pytest.mark.parametrize(("form", "read"), [(Format.JSON, json.loads), (Format.YAML, yaml.safe_load)])
def test_json_and_yaml_hold_every_value(form, read) -> None:
    assert read(printed(form)) == ROWS


def test_jsonl_is_an_object_a_line() -> None:
    assert [json.loads(line) for line in printed(Format.JSONL).splitlines()] == ROWS


def test_the_only_row_is_an_object() -> None:
    out = io.StringIO()
    show_one(ROWS[0], Format.JSON, COLUMNS, out)
    assert json.loads(out.getvalue()) == ROWS[0]
