"""What `millstream streams` does besides running one instance: workers, reset, lag, state."""
