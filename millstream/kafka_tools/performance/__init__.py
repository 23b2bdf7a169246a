"""`kafka-producer-perf-test` and `kafka-consumer-perf-test`, and the metrics that they print."""
