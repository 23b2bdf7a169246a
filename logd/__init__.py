"""The log daemon: Kafka's protocol, Kafka's files, and the client the other packages use."""
