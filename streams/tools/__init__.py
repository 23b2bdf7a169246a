"""The parts of `millstream streams` besides a single instance: workers, reset, lag, state."""
