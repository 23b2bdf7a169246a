"""`millstream acl`: what `kafka-acls` does. Lists, adds and removes access control lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.terminal.command import command, noun_options
from millstream.terminal.session import Session

if TYPE_CHECKING:
    from kafka_client.acl import AclBinding

app = typer.Typer(add_completion=False, no_args_is_help=True)

Topics = Annotated[list[str] | None, typer.Option("--topic", help="A topic; * is any. Repeatable.")]
Groups = Annotated[list[str] | None, typer.Option("--group", help="A consumer group. Repeatable.")]
Ids = Annotated[list[str] | None, typer.Option("--transactional-id", help="A transactional id. Repeatable.")]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
Prefixed = Annotated[bool, typer.Option("--prefixed", help="The names are prefixes of names.")]
Principals = Annotated[
    list[str] | None, typer.Option("--principal", metavar="TYPE:NAME", help="User:alice. Repeatable.")
]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", help="An address or a network; * by default. Repeatable."),
]
Operations = Annotated[
    list[str] | None, typer.Option("--operation", help="read, write, describe, all ... Repeatable.")
]
Producer = Annotated[bool, typer.Option("--producer", help="What a producer needs.")]
Consumer = Annotated[bool, typer.Option("--consumer", help="What a consumer of a --group needs.")]
Deny = Annotated[bool, typer.Option("--deny", help="ACLs that refuse; they go before those that allow.")]

noun_options(app, "Access control lists (ACLs): who may do what. List, add and remove them.")


def _check(yes: bool = False, **options: Any) -> None:
    """Raise UsageError if the options name no ACL."""
    _named(**options)


@command(app, "list")
async def list_acls(
    session: Session,
    *,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Ids = None,
    cluster: Cluster = False,
    prefixed: Prefixed = False,
    principal: Principals = None,
) -> None:
    """List ACLs, all or those of the named resources and principals."""
    from millstream.commands.acl.selection import COLUMNS, Resources, filters, row

    resources = Resources(topic, group, transactional_id, cluster=cluster, prefixed=prefixed)
    there = set()
    for selection in filters(resources, principal or ()):
        there.update(await session.admin.describe_acls(selection))
    session.show(map(row, sorted(there)), COLUMNS)


@command(app, check=_check)
async def add(
    session: Session,
    *,
    principal: Principals = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Ids = None,
    cluster: Cluster = False,
    prefixed: Prefixed = False,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    host: Hosts = None,
    deny: Deny = False,
) -> None:
    """Add ACLs: each principal may carry out each operation on each resource."""
    from millstream.commands.acl.selection import COLUMNS, row

    named = _named(
        *(principal, topic, group, transactional_id, operation, host),
        cluster=cluster,
        prefixed=prefixed,
        producer=producer,
        consumer=consumer,
        deny=deny,
    )
    await session.admin.create_acls(named)
    session.show(map(row, named), COLUMNS)


@command(app, check=_check)
async def remove(
    session: Session,
    *,
    principal: Principals = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Ids = None,
    cluster: Cluster = False,
    prefixed: Prefixed = False,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    host: Hosts = None,
    deny: Deny = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove ACLs, by the options with which they were added."""
    from millstream.commands.acl.selection import COLUMNS, exact_filter, row

    named = _named(
        *(principal, topic, group, transactional_id, operation, host),
        cluster=cluster,
        prefixed=prefixed,
        producer=producer,
        consumer=consumer,
        deny=deny,
    )
    session.confirm(f"Remove {len(named)} ACLs?", yes=yes)
    session.show(map(row, await session.admin.delete_acls(map(exact_filter, named))), COLUMNS)


def _named(
    principal: list[str] | None,
    topic: list[str] | None,
    group: list[str] | None,
    transactional_id: list[str] | None,
    operation: list[str] | None,
    host: list[str] | None,
    *,
    cluster: bool,
    prefixed: bool,
    producer: bool,
    consumer: bool,
    deny: bool,
) -> list[AclBinding]:
    """Return the ACLs that the options name. Raises UsageError if they name none."""
    from millstream.commands.acl.selection import Resources, bindings

    resources = Resources(topic, group, transactional_id, cluster=cluster, prefixed=prefixed)
    return bindings(
        *(resources, principal or (), host or (), operation or ()),
        producer=producer,
        consumer=consumer,
        deny=deny,
    )
