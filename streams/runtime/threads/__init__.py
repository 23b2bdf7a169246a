"""Threads beside the event loop, and the loops that run users' coroutines."""
