"""TLS and SASL from the client's side: settings by Kafka's keys, key stores, mechanisms, tokens.

Sockets and requests are left to `kafka_client.cluster`.
"""
