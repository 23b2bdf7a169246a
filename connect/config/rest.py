"""RestConfig: the settings of a worker's REST interface, by Kafka's keys."""

from __future__ import annotations

from connect.config.checks import at_least
from connect.config.declaration import Config
from connect.config.setting import setting
from kafka_client.errors import ConfigError

BASIC_AUTH = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
"""The only REST extension that this worker has."""
_SCHEMES = ("http", "https")


def _port(value: int) -> None:
    if not 1 <= value <= 65_535:
        raise ValueError("must be a port, 1 to 65535")


def _listeners(value: list[str]) -> None:
    for each in value:
        scheme, separator, address = each.partition("://")
        host, _, port = address.rstrip("/").rpartition(":")
        if scheme.lower() not in _SCHEMES or not separator:
            raise ValueError("must be http://host:port or https://host:port, with commas between several")
        if not port.isdecimal() or int(port) > 65_535 or ("/" in host):
            raise ValueError("must end with a port: http://host:8083")


class RestConfig(Config):
    """Settings of a worker's REST interface."""

    listeners: list[str] = setting(
        "Addresses of the REST interface, `http://host:port` or `https://host:port`; without a host all "
        "interfaces, empty for no REST interface.",
        default=["http://:8083"],
        group="REST",
        check=_listeners,
    )
    admin_listeners: list[str] | None = setting(
        "Addresses of `/admin` alone; empty for no `/admin`; those of `listeners` if not set.",
        default=None,
        importance="LOW",
        group="REST",
        check=_listeners,
    )
    rest_advertised_host_name: str | None = setting(
        "The host under which other workers reach this one.", default=None, importance="LOW", group="REST"
    )
    rest_advertised_port: int | None = setting(
        "The port under which other workers reach this one.",
        default=None,
        importance="LOW",
        group="REST",
        check=_port,
    )
    rest_advertised_listener: str | None = setting(
        "Which listener other workers use, `http` or `https`.", default=None, importance="LOW", group="REST"
    )
    access_control_allow_origin: str = setting(
        "Origin of pages whose scripts may use the REST interface; `*` for all.",
        default="",
        importance="LOW",
        group="REST",
    )
    access_control_allow_methods: str = setting(
        "Methods that such scripts may use; GET, POST and HEAD unless set.",
        default="",
        importance="LOW",
        group="REST",
    )
    response_http_headers_config: str = setting(
        "Headers of every answer: `set X-Frame-Options: DENY, add Cache-Control: no-cache`.",
        default="",
        importance="LOW",
        group="REST",
    )
    rest_extension_classes: list[str] = setting(
        f"`{BASIC_AUTH}` for user names and passwords; others are refused.",
        default=[],
        importance="LOW",
        group="REST",
    )
    java_security_auth_login_config: str | None = setting(
        "JAAS file whose entry `KafkaConnect` names the file of users and passwords.",
        default=None,
        importance="LOW",
        group="REST",
    )
    rest_request_timeout_ms: int = setting(
        "How long a request may take before it is answered 500.",
        default=90_000,
        kind="LONG",
        importance="LOW",
        group="REST",
        check=at_least(1),
    )
    topic_tracking_enable: bool = setting(
        "Whether `/connectors/{name}/topics` answers (KIP-558).", default=True, importance="LOW", group="REST"
    )
    topic_tracking_allow_reset: bool = setting(
        "Whether `/connectors/{name}/topics/reset` is allowed.", default=True, importance="LOW", group="REST"
    )

    PREFIXES = ("listeners.https.", "admin.listeners.https.")

    def check(self) -> None:
        """Raise ConfigError for an extension that is not there, or an advertised listener that is not."""
        for extension in self.rest_extension_classes:
            if extension.rpartition(".")[2] != BASIC_AUTH.rpartition(".")[2]:
                raise ConfigError("rest.extension.classes", extension, f"allowed is only {BASIC_AUTH}")
        if self.rest_extension_classes and not self.java_security_auth_login_config:
            raise ConfigError(
                "java.security.auth.login.config", "", "is needed for basic auth: the path of a JAAS file"
            )
        advertised = (self.rest_advertised_listener or "").lower()
        if advertised and advertised not in {each.partition(":")[0].lower() for each in self.listeners}:
            raise ConfigError(
                "rest.advertised.listener", self.rest_advertised_listener, "must be the scheme of a listener"
            )
