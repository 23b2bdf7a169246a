"""How fast a whole application restores its stores, Millstream's and Kafka Streams'; see `__main__`."""
