"""The `millstream` command: a table of subcommands, filled by entry points, and the demo.

For programs there is `read`, the records of topics as Arrow record batches. It is imported when it is used,
so that nothing else waits for pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.arrow.reader import read

__all__ = ["read"]


def __getattr__(name: str) -> Any:
    if name != "read":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError("millstream.read needs pyarrow: pip install 'millstream[arrow]'") from error
    from millstream.arrow.reader import read

    return read
