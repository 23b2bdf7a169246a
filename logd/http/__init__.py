"""What HTTP views share: a server in the running event loop, errors as JSON, metrics for Prometheus.

Views themselves belong to their packages. Starlette and uvicorn are the extra `http`: import this room's
modules where a view is started, after `check_installed`.
"""

from __future__ import annotations

from importlib.util import find_spec

from logd.errors import MillstreamError


def check_installed(setting: str) -> None:
    """MillstreamError if what serves HTTP is not installed; ``setting`` is what asks for it."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MillstreamError(f"{setting} needs starlette and uvicorn: pip install 'millstream[http]'")
