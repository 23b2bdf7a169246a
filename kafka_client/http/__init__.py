"""The base of HTTP views: a server in the running event loop, errors as JSON, metrics for Prometheus.

The views themselves are in other packages. Starlette and uvicorn are the extra `http`: call `check_installed`
before importing the modules of this package.
"""

from __future__ import annotations

from kafka_client.errors import MillstreamError


def check_installed(setting: str) -> None:
    """Raise MillstreamError if the HTTP packages are not installed.

    ``setting`` names the setting that needs them, for the error's text.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        raise MillstreamError(
            f"{setting} needs {missing.name}, which is not installed: pip install 'millstream[http]'"
        ) from None
