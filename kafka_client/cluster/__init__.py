"""The client's view of the cluster, and its connections to the brokers."""
