"""`millstream cluster`: what the cluster is, its brokers, and what they speak."""
