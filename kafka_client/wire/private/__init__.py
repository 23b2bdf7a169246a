"""Messages between Millstream's brokers, and from its commands to brokers: keys from 10000 on.

ApiVersions does not list them. They are declared like Kafka's. Every released version stays readable, since
brokers of two releases run side by side while a cluster is upgraded.
"""
