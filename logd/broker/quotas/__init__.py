"""Client quotas of this broker: rates, limits, and how long a client has to wait."""
