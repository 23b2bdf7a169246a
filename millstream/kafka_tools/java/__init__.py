"""The forms in which Java prints and parses: numbers, times and errors."""
