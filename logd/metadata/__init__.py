"""Cluster metadata and its stores: a standalone broker's journal, or ZooKeeper."""
