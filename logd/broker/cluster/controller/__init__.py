"""The controller's role on this broker: decisions, the feed to the brokers, requests left in znodes."""
