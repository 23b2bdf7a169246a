"""The forms of rules: a permission for a whole request, or one for each item of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from kafka_client.errors import ErrorCode
from kafka_client.wire import Message
from logd.api.authorization.access import Access, Need


class Verdict(NamedTuple):
    """The decision about a request.

    Serve `request`, which lacks the refused items, and pass the response to `amend`, which adds them. If
    nothing is to be served `request` is None, and `response` is the response.
    """

    request: Any
    response: Any = None
    amend: Callable[[Any], None] | None = None


class Rule(Protocol):
    """A rule of one API, or a part of it."""

    def __call__(self, request: Any, access: Access) -> Verdict:
        """Return what the peer is served of this request."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A permission without which the whole request is refused; no need: nothing is asked for."""

    needs: Callable[[Any], Need | None]
    refuse: Callable[[Any, ErrorCode], Message]

    def __call__(self, request: Any, access: Access) -> Verdict:
        """Return the refusal, or the request as it is."""
        need = self.needs(request)
        if need is None or access.allows(need):
            return Verdict(request)
        return Verdict(None, self.refuse(request, need.error))


@dataclass(frozen=True, slots=True)
class Each:
    """A permission for each item in the request's field `items`.

    Refused items are left out of the request; their rows are added to the response's field `into`.
    """

    items: str
    needs: Callable[[Any, Access], Need | None]
    row: Callable[[Any, ErrorCode], Any]
    response: type[Message]
    into: str

    def __call__(self, request: Any, access: Access) -> Verdict:
        """Return the request for the allowed items."""
        allowed, rows = [], []
        for item in getattr(request, self.items):
            need = self.needs(item, access)
            if need is None or access.allows(need):
                allowed.append(item)
            else:
                rows.append(self.row(item, need.error))
        if not rows:
            return Verdict(request)
        if not allowed:
            return Verdict(None, self.response(**{self.into: rows}))
        reduced = msgspec.structs.replace(request, **{self.items: allowed})
        return Verdict(reduced, amend=lambda response: getattr(response, self.into).extend(rows))


@dataclass(frozen=True, slots=True)
class All:
    """Several rules, one after the other."""

    rules: tuple[Rule, ...]

    def __call__(self, request: Any, access: Access) -> Verdict:
        """Return the verdict of all rules."""
        amendments: list[Callable[[Any], None]] = []
        for rule in self.rules:
            verdict = rule(request, access)
            if verdict.amend is not None:
                amendments.append(verdict.amend)
            if verdict.request is None:
                _amend(verdict.response, amendments)
                return verdict
            request = verdict.request
        return Verdict(request, amend=lambda response: _amend(response, amendments))


def in_turn(*rules: Rule) -> All:
    """Return a rule of several parts."""
    return All(rules)


@dataclass(frozen=True, slots=True)
class Shown:
    """A change of the response, which removes what the peer may not see."""

    hide: Callable[[Any, Any, Access], None]
    """Called with the response, the request and the peer's permissions."""

    def __call__(self, request: Any, access: Access) -> Verdict:
        """Return the request as it is."""
        return Verdict(request, amend=lambda response: self.hide(response, request, access))


def free(request: Any, access: Access) -> Verdict:
    """Serve a request that needs no permission."""
    return Verdict(request)


def _amend(response: Any, amendments: list[Callable[[Any], None]]) -> None:
    """Apply the amendments, the last rule's first: a `Shown` in front of an `Each` sees the added rows."""
    for amend in reversed(amendments):
        amend(response)
