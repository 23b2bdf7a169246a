"""Sockets: listeners, connections, zero-copy send."""
