from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from millstream.demo import cli
from millstream.demo.checks import Check
from millstream.demo.run import Outcome

YES, NO = Check("a", True, ""), Check("b", False, "")


@pytest.mark.parametrize(("checks", "holds"), [([YES], True), ([YES, NO], False), ([], False)])
def test_everything_has_to_hold_and_something_has_to_be_checked(checks: list[Check], holds: bool) -> None:
    assert Outcome([], checks, [], 0.0).holds is holds


@pytest.mark.parametrize(("holds", "status"), [(True, 0), (False, 1)])
def test_the_exit_status_says_whether_everything_agrees(
    holds: bool, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(folder: Path, flights: Path | None, keep: bool) -> bool:
        return holds

    monkeypatch.setattr(cli, "_run", run)

    assert CliRunner().invoke(cli.app, []).exit_code == status


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()

    result = CliRunner().invoke(cli.app, ["--folder", str(tmp_path)])

    assert result.exit_code == 2
    assert "must be empty" in result.output
    assert (tmp_path / "mine").exists()
