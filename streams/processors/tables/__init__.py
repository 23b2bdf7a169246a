"""Operators of tables: stores, updates held back, and versioned tables."""
