"""Millstream's streams beside Kafka Streams, one instance and one thread each: see `__main__`."""
