"""The HTML page: state, tasks, lag, restores, and the topology's picture.

It loads nothing from elsewhere and has no script: the browser reloads it every few seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

REFRESH_SECONDS = 5
SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

_STYLE = """
body { font: 14px system-ui, sans-serif; margin: 2em; color: #1f2937; }
table { border-collapse: collapse; margin: 0 0 2em; }
th, td { border-bottom: 1px solid #d1d5db; padding: 4px 12px; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; }
"""


def page(status: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]], lag: Any, picture: str) -> str:
    """Return the facts of ``/status``, ``/tasks`` and ``/lag`` as an HTML page; ``picture``: SVG."""
    title = escape(status["application_id"])
    facts = [(name, _text(value)) for name, value in status.items() if not isinstance(value, dict | list)]
    inputs = [(each["input"], each["position"], each["end"], each["lag"]) for each in lag["inputs"]]
    rows = [
        (each["task"], each["role"], ", ".join(each["stores"]), each["restored"], each["remaining"])
        for each in tasks
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}"><style>{_STYLE}</style></head><body>'
        f"<h1>{title}: {escape(_text(status['state']))}</h1>"
        + _table((), facts)
        + "<h2>Tasks</h2>"
        + _table(("task", "is", "stores", "records restored", "offsets to go"), rows)
        + "<h2>Lag</h2>"
        + _table(("input", "position", "end", "lag"), inputs)
        + f"<h2>Topology</h2>{picture}</body></html>"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: Any) -> str:
    number = ' class="number"' if isinstance(value, int) else ""
    return f"<td{number}>{escape(_text(value))}</td>"


def _text(value: Any) -> str:
    return "" if value is None else str(value)
