"""HTTP: a source that reads an API page by page, and a sink that sends records to one."""

try:
    import httpx  # noqa: F401
except ImportError as e:
    raise ImportError("the HTTP plugins need httpx: pip install 'millstream[http]'") from e

from plugins.http.sink import HttpSink
from plugins.http.source import HttpSource

__all__ = ["HttpSink", "HttpSource"]
