"""The final output of the demo: its parts, checks, ten worst days, and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from millstream.demo.display import stage_table

if TYPE_CHECKING:
    from millstream.demo.run import Demo, Outcome


def show_outcome(console: Console, outcome: Outcome) -> None:
    """Print the outcome of the run."""
    console.print(stage_table(outcome.stages, "Every record through every part"))
    worst = Table(title="The ten worst days, by mean delay at departure (Spark SQL)", title_justify="left")
    worst.add_column("day")
    for heading in ("mean delay, min", "departures", "cancellations"):
        worst.add_column(heading, justify="right")
    for row in outcome.worst_days:
        worst.add_row(
            row["day"], f"{row['mean_delay']:.1f}", f"{row['departures']:,}", f"{row['cancellations']:,}"
        )
    console.print(worst)
    proof = Table(title="Checked", title_justify="left")
    proof.add_column("what")
    proof.add_column("holds")
    proof.add_column("found")
    for check in outcome.checks:
        proof.add_row(check.what, "yes" if check.holds else "[bold red]NO[/]", check.detail)
    console.print(proof)
    verdict = "Everything agrees" if outcome.holds else "Something disagrees"
    console.print(f"{verdict}; {outcome.seconds:.1f} s in all.", highlight=False)


def show_addresses(console: Console, demo: Demo) -> None:
    """Print the addresses of a demo that keeps running."""
    layout = demo.layout
    console.print(
        f"Left running until Ctrl-C:\n"
        f"  dc1   {layout.dc1}   kcat -b {layout.dc1} -t airline-delays -C\n"
        f"  dc2   {layout.dc2}   kcat -b {layout.dc2} -t dc1.airline-delays -C\n"
        f"  data  {layout.folder}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
