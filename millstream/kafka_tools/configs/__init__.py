"""`kafka-configs`: settings of topics, brokers, groups and clients, as Kafka's ConfigCommand has them."""
