"""The URLs and files that tokens may come from.

Kafka's clients have system properties of the JVM for this; here they are variables of the environment:

    MILLSTREAM_SASL_OAUTHBEARER_ALLOWED_URLS     org.apache.kafka.sasl.oauthbearer.allowed.urls
    MILLSTREAM_SASL_OAUTHBEARER_ALLOWED_FILES    org.apache.kafka.sasl.oauthbearer.allowed.files

Each is a list separated by commas. In Kafka nothing is allowed without them. Here a program's own settings
may name any URL or file as long as the variable is not set. Settings that others hand in, as those of
connectors, need it: else somebody could have this machine ask servers, or read files, that they do not reach
themselves.
"""

from __future__ import annotations

import os
import urllib.parse
from typing import Final

URLS: Final = "MILLSTREAM_SASL_OAUTHBEARER_ALLOWED_URLS"
FILES: Final = "MILLSTREAM_SASL_OAUTHBEARER_ALLOWED_FILES"


def split_url(url: str) -> urllib.parse.SplitResult:
    """Return the parts of a URL, all of them empty if it cannot be read."""
    try:
        return urllib.parse.urlsplit(url)
    except ValueError:
        return urllib.parse.urlsplit("")


def refusal(url: str, *, is_own: bool) -> str:
    """Return what has to be done before tokens may come from the URL; empty if they may.

    `is_own` is True for the settings of this program, False for settings that others hand in.
    """
    parts = split_url(url)
    is_file = parts.scheme == "file"
    variable = FILES if is_file else URLS
    text = os.environ.get(variable)
    if text is None and is_own:
        return ""
    listed = [each.strip() for each in (text or "").split(",")]
    if url in listed or (is_file and urllib.parse.unquote(parts.path) in listed):
        return ""
    return f"is not allowed: the environment variable {variable} of this process has to list it"
