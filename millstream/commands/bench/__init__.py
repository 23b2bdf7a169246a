"""`millstream bench`: how fast records are written and read, as Kafka's performance tools measure it."""
