"""The command `millstream partition`: leaders and replicas of partitions."""
