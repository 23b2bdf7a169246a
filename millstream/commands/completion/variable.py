"""The environment variable by which a shell asks for completions."""

from __future__ import annotations

COMPLETE = "_MILLSTREAM_COMPLETE"
