"""Messages between brokers of Millstream: keys from 10000 on, which ApiVersions never tells of.

They are declared like Kafka's, and every version that was ever released stays readable: brokers of two
releases are beside each other while a cluster is upgraded.
"""
