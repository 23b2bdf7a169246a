"""Ways to run work: periodic tasks, the thread pool, wake-ups and timeouts."""
