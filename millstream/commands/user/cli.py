"""`millstream user`: what `kafka-configs --entity-type users` does for SCRAM, with passwords out of sight."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from millstream.terminal.command import command, local_command, noun_options
from millstream.terminal.session import Local, Session

app = typer.Typer(add_completion=False, no_args_is_help=True)

USERS = ("user", "mechanism", "iterations")


class Mechanism(StrEnum):
    """The SCRAM mechanisms."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


UserName = Annotated[str, typer.Argument(metavar="USER", help="The user's name.")]
Mechanisms = Annotated[
    list[Mechanism] | None, typer.Option("--mechanism", help="The mechanism; repeatable. SCRAM-SHA-512.")
]
Iterations = Annotated[int, typer.Option("--iterations", help="Rounds of hashing, 4096 to 16384.")]
PasswordFile = Annotated[
    Path | None, typer.Option("--password-file", metavar="FILE", help="A file with the password.")
]
PasswordEnv = Annotated[
    str | None,
    typer.Option("--password-env", metavar="NAME", help="An environment variable with the password."),
]

noun_options(app, "Users that log in by SCRAM: list, add and remove them; set the first one.")


@command(app, "list")
async def list_users(session: Session) -> None:
    """List users with their mechanisms."""
    users = await session.admin.describe_scram_credentials()
    session.show(
        (
            {"user": user, "mechanism": mechanism, "iterations": iterations}
            for user, mechanisms in sorted(users.items())
            for mechanism, iterations in sorted(mechanisms.items())
        ),
        USERS,
    )


@command(app)
async def add(
    session: Session,
    *,
    user: UserName,
    mechanism: Mechanisms = None,
    iterations: Iterations = 4096,
    password_file: PasswordFile = None,
    password_env: PasswordEnv = None,
) -> None:
    """Add a user, or set a user's new password. Without an option the password is asked for."""
    from millstream.commands.user.password import read_password

    password = read_password(user, password_file, password_env)
    for each in mechanism or [Mechanism.SHA_512]:
        await session.admin.set_scram_credential(user, each, password, iterations=iterations)


@command(app)
async def remove(
    session: Session,
    *,
    user: UserName,
    mechanism: Mechanisms = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove a user, or only some of the user's mechanisms."""
    there = (await session.admin.describe_scram_credentials([user]))[user]
    session.confirm(f"Remove user {user}? New logins fail from then on.", yes=yes)
    for each in mechanism or there:
        await session.admin.delete_scram_credential(user, str(each))


@local_command(app)
def bootstrap(
    local: Local,
    *,
    user: UserName,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The broker's server.properties.")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--override", help="key=value on top of the file; repeatable.")
    ] = None,
    mechanism: Mechanisms = None,
    iterations: Iterations = 4096,
    password_file: PasswordFile = None,
    password_env: PasswordEnv = None,
) -> None:
    """Set a user where no broker runs yet, in log.dirs or in ZooKeeper, as kafka-storage --add-scram does.

    So a broker may have no other listeners than those that ask for a login.
    """
    from millstream.commands.user.bootstrap import run
    from millstream.commands.user.password import read_password

    password = read_password(user, password_file, password_env)
    mechanisms = [str(each) for each in mechanism or [Mechanism.SHA_512]]
    where = run(config, override or [], user, mechanisms, password, iterations)
    local.tell(f"User {user} is set in {where}.")
