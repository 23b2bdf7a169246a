"""What a client knows of the cluster, and its connections to the brokers."""
