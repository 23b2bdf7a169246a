"""The command `millstream broker`: brokers, and how they are stopped."""
