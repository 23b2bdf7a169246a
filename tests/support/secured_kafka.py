"""An Apache Kafka whose listeners ask for TLS and SASL, and what clients need to be let in.

with SecuredKafka(tmp_path / "kafka") as kafka:
    Client(kafka.at("SASL_SSL"), security=SecuritySettings.from_properties({**kafka.trust, ...}))
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.apache_kafka import ApacheKafka
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.waiting import wait_for

USER, PASSWORD = "alice", 'hunter2 "quoted" größe'
LISTENERS = {
    "SASL_SSL": "SASL_SSL",
    "MUTUAL": "SSL",
    "SHORT": "SASL_PLAINTEXT",
}
"""By name; MUTUAL asks for a certificate, SHORT has PLAIN alone and sessions of `SESSION_MS`."""
SESSION_MS = 4_000
SECONDS = 30.0
_MODULES = "org.apache.kafka.common.security"


class SecuredKafka(ApacheKafka):
    """`bootstrap` is the PLAINTEXT listener. The user is there for PLAIN and both SCRAMs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.authority = Authority("test CA")
        self._ports = {name: free_port() for name in LISTENERS}
        issued = self.authority.issue("broker", ["127.0.0.1", "localhost"])
        # A properties file of Java's is in Latin-1, and has backslashes twice.
        escaped = (c if c.isascii() else f"\\u{ord(c):04x}" for c in PASSWORD.replace('"', '\\\\"'))
        quoted = "".join(escaped)
        plain = f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{quoted}";'
        scram = f"{_MODULES}.scram.ScramLoginModule required;"
        oauth = f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";'
        urls = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self._ports.items())
        protocols = ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items())
        self.settings |= {
            # Records of tests are of 1970, and Kafka looks for what is too old 30 s after its start.
            "log.retention.ms": -1,
            "listeners": f"{self.settings['listeners']},{urls}",
            "advertised.listeners": f"{self.settings['advertised.listeners']},{urls}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": issued.write_pem(folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.write_pem(folder / "ca.pem"),
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": plain,
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": scram,
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": scram,
            "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": oauth,
            "listener.name.short.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.short.plain.sasl.jaas.config": plain,
            "listener.name.short.plain.connections.max.reauth.ms": SESSION_MS,
        }

    def start(self) -> Self:
        """Start, and make the user's SCRAM credentials."""
        super().start()
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        credentials = [
            UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 8192), PASSWORD.encode())
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        ]
        for credential in credentials:
            wait_for(lambda each=credential: _is_made(admin, each), SECONDS)  # type: ignore[misc]
        return self

    def at(self, listener: str) -> str:
        """``host:port`` of one of `LISTENERS`."""
        return f"127.0.0.1:{self._ports[listener]}"

    @property
    def trust(self) -> dict[str, str]:
        """Kafka's keys for trusting the broker's certificate."""
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.folder / "ca.pem")}


def _is_made(admin: AdminClient, credential: UserScramCredentialUpsertion) -> bool:
    try:
        for future in admin.alter_user_scram_credentials([credential]).values():
            future.result(SECONDS)
    except KafkaException as error:
        if not error.args[0].retriable():
            raise
        return False
    return True


def jaas(module: str, **options: str) -> str:
    """Return a value for `sasl.jaas.config`."""
    listed = "".join(
        ' {}="{}"'.format(name, value.replace("\\", "\\\\").replace('"', '\\"'))
        for name, value in options.items()
    )
    return f"{_MODULES}.{module} required{listed};"
