"""The command `millstream config`: settings of topics, brokers and groups."""
