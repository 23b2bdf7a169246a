"""Security of the broker: SASL's server side, credentials, TLS and ACLs. Pure where it decides."""
