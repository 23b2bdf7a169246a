"""`kafka-consumer-groups`: groups of consumers and their offsets, as ConsumerGroupCommand has them."""
