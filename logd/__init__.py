"""The log daemon: Kafka's protocol, Kafka's files, and the client the other packages use."""

import os

if os.environ.get("MILLSTREAM_NO_EXTENSIONS"):
    from logd.uncompiled import use_sources

    use_sources()
