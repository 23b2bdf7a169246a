"""Admin calls, by what they are about."""
