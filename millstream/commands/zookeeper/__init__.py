"""`millstream zookeeper`: run an ensemble on this machine."""
