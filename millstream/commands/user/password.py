"""A new user's password: from a file, from the environment, or asked for. It is never an argument."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from millstream.terminal.status import UsageError


def read_password(user: str, file: Path | None, variable: str | None) -> str:
    """Return the password; a newline at the end of the file is not a part of it. Raises UsageError."""
    if file is not None and variable is not None:
        raise UsageError("give --password-file or --password-env, not both")
    if file is not None:
        password = file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    elif variable is not None:
        password = os.environ.get(variable, "")
    elif sys.stdin.isatty():
        password = typer.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise UsageError("nobody can be asked for the password: give --password-file or --password-env")
    if not password:
        raise UsageError("the password is empty")
    return password
