"""`millstream logd --processes N`: brokers side by side on one host, a process each, for as many cores.

They are a cluster's brokers like any others, and know nothing of each other but by ZooKeeper.
"""
