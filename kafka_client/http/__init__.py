"""The base of HTTP views: a server in the running event loop, errors as JSON, metrics for Prometheus.

The views themselves belong to their packages. Starlette and uvicorn are the extra `http`: import the modules
of this package where a view is started, after `check_installed`.
"""

from __future__ import annotations

from kafka_client.errors import MillstreamError


def check_installed(setting: str) -> None:
    """Raise MillstreamError if the HTTP packages are not installed; ``setting`` is what needs them."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        raise MillstreamError(
            f"{setting} needs {missing.name}, which is not installed: pip install 'millstream[http]'"
        ) from None
