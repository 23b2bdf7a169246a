"""What HTTP views share: a server in the running event loop, errors as JSON, metrics for Prometheus.

Views themselves belong to their packages. Starlette and uvicorn are the extra `http`: import this room's
modules where a view is started, after `check_installed`.
"""

from __future__ import annotations

from kafka_client.errors import MillstreamError


def check_installed(setting: str) -> None:
    """MillstreamError if what serves HTTP is not installed; ``setting`` is what asks for it."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        raise MillstreamError(
            f"{setting} needs {missing.name}, which is not installed: pip install 'millstream[http]'"
        ) from None
