"""Membership in a group, its assignors, and the consumer on top."""
