"""The log daemon: Kafka's protocol over Kafka's files."""
