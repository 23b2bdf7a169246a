"""The result of one check of the doctor."""

from __future__ import annotations

from typing import NamedTuple

OK, WARNING, FAILED = "ok", "warning", "failed"


class Finding(NamedTuple):
    """The result of a check; `remedy` is None if nothing is to be done."""

    check: str
    status: str
    detail: str
    remedy: str | None = None
