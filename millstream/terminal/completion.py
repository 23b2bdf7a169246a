"""Completions of arguments: names of topics, groups and profiles.

Only names are printed while the user types. Without a reachable cluster there are no completions.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import typer

from kafka_client.errors import MillstreamError
from kafka_client.profiles import known_profiles

if TYPE_CHECKING:
    from kafka_client import Client

PATIENCE_SECONDS = 1.0
"""How long to wait for the cluster."""


def complete_topics(context: typer.Context, incomplete: str) -> list[str]:
    """Return the matching topics of the cluster that the command line names so far."""

    async def ask(client: Client) -> Iterable[str]:
        return (await client.metadata()).topics

    return _matching(_answers(context, ask), incomplete)


def complete_groups(context: typer.Context, incomplete: str) -> list[str]:
    """Return the matching groups of the cluster that the command line names so far."""

    async def ask(client: Client) -> Iterable[str]:
        from kafka_client import Admin

        return [group.group_id for group in await Admin(client).list_groups()]

    return _matching(_answers(context, ask), incomplete)


def complete_profiles(incomplete: str) -> list[str]:
    """Return the matching names of profiles."""
    return _matching(known_profiles(), incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _answers(context: typer.Context, ask: Callable[[Client], Awaitable[Iterable[str]]]) -> Iterable[str]:
    import asyncio

    from millstream.terminal.servers import find_servers

    async def main() -> Iterable[str]:
        servers = find_servers(
            _option(context, "bootstrap_server"), _file(context), _option(context, "profile")
        )
        timeout_ms = round(PATIENCE_SECONDS * 1000)
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            servers.client(connect_timeout_ms=timeout_ms, request_timeout_ms=timeout_ms) as client,
        ):
            return await ask(client)

    logging.disable()
    try:
        return asyncio.run(main())
    except (MillstreamError, OSError, TimeoutError):
        return ()
    finally:
        logging.disable(logging.NOTSET)


def _option(context: typer.Context, name: str) -> Any:
    """Return an option's value, of the command or of the noun before it."""
    before = context.parent.params if context.parent is not None else {}
    return context.params.get(name) or before.get(name)


def _file(context: typer.Context) -> Any:
    from pathlib import Path

    file = _option(context, "command_config")
    return None if file is None else Path(file)
