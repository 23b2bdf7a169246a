"""Tests are run again, after the sample, where the depth can change them."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.support import depth, passed_before
from tests.support.depth_uses import TESTS

PLAIN = TESTS / "connect/herder/test_herder.py"
"""A file with plain tests and a state machine, that asks for no depth."""


@given(st.integers())
def by_hypothesis(number):
    assert number == number


class Machine(RuleBasedStateMachine):
    @rule()
    def step(self):
        pass


def plain():
    pass


def test_tests_with_hypothesis_are_run_again_and_plain_ones_are_not():
    functions = {by_hypothesis: True, Machine.TestCase.runTest: True, plain: False}
    for function, again in functions.items():
        assert passed_before.depends_on_depth(SimpleNamespace(function=function, path=PLAIN)) is again


def test_what_a_test_starts_leaves_nothing_out(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    item = pytest.Function.from_parent(request.node.parent, name="plain", callobj=plain)
    item.path = PLAIN
    (tmp_path / "passed").write_text(f"{item.nodeid}\n")
    monkeypatch.setenv(passed_before.VARIABLE, str(tmp_path / "passed"))
    monkeypatch.setattr(depth, "DEPTH", 1)
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    items = [item]
    passed_before.pytest_collection_modifyitems(SimpleNamespace(hook=hook, stash={}), items)
    assert items == []
    assert passed_before.VARIABLE not in os.environ
