"""A broker in a cluster: connections to other brokers, the controller's feed, the leaders of partitions."""
