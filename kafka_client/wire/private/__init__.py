"""Messages between brokers of Millstream, and from its command to them: keys from 10000 on.

ApiVersions never tells of them. They are declared like Kafka's, and every version that was ever released
stays readable: brokers of two releases are beside each other while a cluster is upgraded.
"""
