"""Cluster metadata and the seam to where it is kept: embedded (files), later ZooKeeper."""
