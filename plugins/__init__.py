"""Connectors, one package per external system."""
