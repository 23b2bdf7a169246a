"""The options of Kafka's tools: parsers, the `--help` table, and the values that options take."""
