"""A partition: its log, the rules for its batches, and its role among its replicas."""
