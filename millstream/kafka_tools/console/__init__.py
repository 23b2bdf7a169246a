"""`kafka-console-producer` and `kafka-console-consumer`: lines to records, and records to lines."""
