"""Settings of the HTTP source and the HTTP sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from connect.api import Config, ConfigError, Password, at_least, setting
from plugins.http.statuses import statuses


def _http(url: str) -> None:
    if not url.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")


def _statuses(text: str) -> None:
    statuses(text)


class HttpConfig(Config):
    """Settings that the source and the sink share; further request headers are keys `headers.NAME`."""

    PREFIXES: ClassVar[tuple[str, ...]] = ("headers.",)
    auth_type: Literal["none", "basic", "bearer", "api-key", "oauth2"] = setting(
        "How requests are authenticated; oauth2 takes the client credentials grant.",
        default="none",
        group="Authentication",
    )
    auth_user: str | None = setting("User of basic.", default=None, group="Authentication")
    auth_password: Password | None = setting("Password of basic.", default=None, group="Authentication")
    auth_token: Password | None = setting("Token of bearer.", default=None, group="Authentication")
    auth_key: Password | None = setting("Key of api-key.", default=None, group="Authentication")
    auth_key_header: str = setting(
        "Header that carries the key of api-key.", default="X-API-Key", group="Authentication"
    )
    oauth2_token_url: str | None = setting(
        "Where tokens come from.", default=None, group="Authentication", check=_http
    )
    oauth2_client_id: str | None = setting("Client of oauth2.", default=None, group="Authentication")
    oauth2_client_secret: Password | None = setting(
        "Secret of the client.", default=None, group="Authentication"
    )
    oauth2_scope: str | None = setting("Scope to ask for.", default=None, group="Authentication")
    tls_verify: bool = setting(
        "Whether the server's certificate is verified; false is for tests only.", default=True
    )
    tls_ca_file: str | None = setting(
        "Certificates to trust, in PEM; the well-known ones if not set.", default=None
    )
    tls_certificate_file: str | None = setting(
        "The client's own certificate, in PEM, for servers that ask for one.", default=None
    )
    tls_key_file: str | None = setting(
        "The key of the client's certificate, in PEM; in the same file if not set.", default=None
    )
    tls_key_password: Password | None = setting("Password of an encrypted key.", default=None)
    timeout_ms: int = setting("How long a request may take, in ms.", default=30_000, check=at_least(1))
    requests_per_second: float = setting(
        "Requests per second of each task; 0: no bound. A Retry-After is heeded besides.",
        default=0.0,
        check=at_least(0),
    )
    retry_on_status: str = setting(
        "Statuses after which a request is made again: numbers and ranges.",
        default="408,429,500-599",
        check=_statuses,
    )
    response_bytes_max: int = setting(
        "A larger response is an error.", default=64 << 20, kind="LONG", importance="LOW", check=at_least(1)
    )

    _NEEDED = {
        "basic": ("auth_user", "auth_password"),
        "bearer": ("auth_token",),
        "api-key": ("auth_key",),
        "oauth2": ("oauth2_token_url", "oauth2_client_id", "oauth2_client_secret"),
    }

    def check(self) -> None:
        """Raise ConfigError if what the kind of authentication or a key of TLS needs is not set."""
        for attribute in self._NEEDED.get(self.auth_type, ()):
            if getattr(self, attribute) is None:
                key = attribute.replace("_", ".")
                raise ConfigError(key, "", f"is required with auth.type={self.auth_type}")
        if self.tls_key_file and not self.tls_certificate_file:
            raise ConfigError("tls.certificate.file", "", "is required with tls.key.file")

    def prefixed(self, prefix: str) -> Mapping[str, str]:
        """Return the values of the keys that begin with `prefix`, without it."""
        return {k.removeprefix(prefix): str(v) for k, v in self.raw.items() if k.startswith(prefix)}


class HttpSourceConfig(HttpConfig):
    """Reads records from an HTTP API that answers in JSON, page by page.

    Query parameters are keys `params.NAME`. `${offset}` in the URL, a parameter or the body is the
    largest value of `offset.path` in all rounds before, at first `offset.initial`. A round goes through all
    pages, the next begins after `poll.interval.ms`. The source partition is `{"url": url}`. The source offset
    is `{"value", "newest", "next"}`: the round's `${offset}`, the next round's, and the next page. It is
    stored with a page's last record, so a restart goes on with the next page.
    """

    PREFIXES = ("headers.", "params.")
    topic: str = setting("The topic to write to.", importance="HIGH")
    url: str = setting("The URL to request.", importance="HIGH", check=_http)
    method: Literal["GET", "POST"] = setting("The request's method.", default="GET")
    body: str | None = setting("The request's body.", default=None)
    poll_interval_ms: int = setting(
        "How long to wait after the last page, in ms.", default=60_000, kind="LONG", check=at_least(0)
    )
    iterations: int = setting(
        "Rounds through all pages; the source ends then. -1: no end.", default=-1, check=at_least(-1)
    )
    records_path: str = setting(
        "Where the list of records is in the response: names with dots between. Empty: the response itself.",
        default="",
        importance="HIGH",
    )
    key_path: str | None = setting("Where the key is in a record.", default=None)
    offset_path: str | None = setting("Where the value for `${offset}` is in a record.", default=None)
    offset_initial: str = setting("The first `${offset}`.", default="")
    paging: Literal["none", "link-header", "next-link", "page", "offset", "cursor"] = setting(
        "How the next page is found: by the header `Link`, by a URL or a cursor in the response, or by "
        "counting pages or records up to a page that is not full.",
        default="none",
        group="Paging",
    )
    paging_path: str | None = setting(
        "Where the next URL or the cursor is in the response.", default=None, group="Paging"
    )
    paging_param: str | None = setting(
        "Parameter of the page, offset or cursor; its kind's name if not set.", default=None, group="Paging"
    )
    paging_start: int = setting(
        "The first page's number; the first offset is 0.", default=1, group="Paging", check=at_least(0)
    )
    paging_size: int | None = setting(
        "Records of a full page.", default=None, group="Paging", check=at_least(1)
    )
    paging_size_param: str | None = setting("Parameter of the page's size.", default=None, group="Paging")

    def check(self) -> None:
        """Raise ConfigError for settings that do not fit together."""
        super().check()
        if self.paging in ("next-link", "cursor") and not self.paging_path:
            raise ConfigError("paging.path", "", f"is required with paging={self.paging}")


class HttpSinkConfig(HttpConfig):
    """Sends records to an HTTP API, in batches or one by one, in each partition's order.

    `${topic}` and `${key}` in the URL are the record's. A `put` returns when every record was accepted.
    A batch that the API refuses is sent again record by record. A single record that it refuses is reported
    (KIP-610), or fails the task. A redirect is followed to the same server, and with the same method.
    """

    url: str = setting("The URL to send to.", importance="HIGH", check=_http)
    method: Literal["POST", "PUT", "PATCH"] = setting("The request's method.", default="POST")
    batch_format: Literal["array", "lines", "single"] = setting(
        "A JSON array, JSON lines, or a request for each record.", default="single", importance="HIGH"
    )
    batch_max_records: int = setting("Records of a request at most.", default=500, check=at_least(1))
    on_null_value: Literal["ignore", "delete", "fail"] = setting(
        "What a record without a value does: nothing, a request DELETE to a URL with `${key}`, or a failure.",
        default="ignore",
    )

    def check(self) -> None:
        """Raise ConfigError for settings that do not fit together."""
        super().check()
        if self.on_null_value == "delete" and "${key}" not in self.url:
            raise ConfigError("url", self.url, "needs ${key} with on.null.value=delete")
