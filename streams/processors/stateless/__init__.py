"""Operators without stores: map, filter, print, batches and asynchronous calls."""
