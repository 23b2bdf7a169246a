"""ZooKeeper for development and tests: an ensemble of processes out of PySpark's jars."""
