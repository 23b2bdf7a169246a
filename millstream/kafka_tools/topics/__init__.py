"""`kafka-topics`: topics and their partitions, as Kafka's TopicCommand has them."""
