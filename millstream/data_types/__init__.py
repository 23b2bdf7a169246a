"""Data types of keys, values and headers: conversions between bytes, values and text."""
