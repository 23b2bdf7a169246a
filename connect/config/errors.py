"""The settings of what a task does with records that fail (KIP-298); Kafka's own keys."""

from __future__ import annotations

from typing import Literal

from connect.config.checks import at_least
from connect.config.declaration import Config
from connect.config.setting import setting


class ErrorsConfig(Config):
    """Settings of retries, tolerance and dead letters, for sources and sinks."""

    errors_retry_timeout: int = setting(
        "How long a conversion or transform that raises RetriableError is tried again, in ms; -1: no limit.",
        default=0,
        group="Errors",
        kind="LONG",
        check=at_least(-1),
    )
    errors_retry_delay_max_ms: int = setting(
        "The longest pause between two such tries, in ms.",
        default=60_000,
        group="Errors",
        kind="LONG",
        check=at_least(1),
    )
    errors_tolerance: Literal["none", "all"] = setting(
        "`all`: leave out records that fail and batches that cannot be read, and count them; `none`: fail.",
        default="none",
        group="Errors",
    )
    errors_log_enable: bool = setting(
        "Log each error with the place of its record, also of an error that fails the task.",
        default=False,
        group="Errors",
    )
    errors_log_include_messages: bool = setting(
        "Log also key, value and headers of a record that fails.", default=False, group="Errors"
    )
    errors_deadletterqueue_topic_name: str | None = setting(
        "The topic for records that `errors.tolerance=all` leaves out; unset: none.",
        default=None,
        group="Errors",
    )
    errors_deadletterqueue_topic_replication_factor: int = setting(
        "Replication factor of that topic when the task creates it; -1: the broker's default.",
        default=3,
        group="Errors",
        check=at_least(-1),
    )
    errors_deadletterqueue_context_headers_enable: bool = setting(
        "Give dead letters headers that say where a record comes from and what its error is.",
        default=False,
        group="Errors",
    )

    errors_restart_max: int = setting(
        "How many times in a row a failed task is started again by itself; 0: a person has to.",
        default=3,
        importance="LOW",
        group="Errors",
        check=at_least(0),
    )
    errors_restart_backoff_ms: int = setting(
        "The pause before the first such start, in ms; it doubles with each.",
        default=10_000,
        importance="LOW",
        group="Errors",
        check=at_least(1),
    )
    errors_restart_backoff_max_ms: int = setting(
        "The longest pause before such a start, in ms.",
        default=300_000,
        importance="LOW",
        group="Errors",
        check=at_least(1),
    )
    errors_restart_reset_ms: int = setting(
        "A task that ran so long before it failed, in ms, has all its starts again.",
        default=600_000,
        importance="LOW",
        group="Errors",
        check=at_least(1),
    )

    @property
    def dead_letter_topic(self) -> str | None:
        """The name of the dead letter queue's topic, or None."""
        return self.errors_deadletterqueue_topic_name or None

    @property
    def tolerates_all(self) -> bool:
        """True if records that fail are left out, False if they fail the task."""
        return self.errors_tolerance == "all"
