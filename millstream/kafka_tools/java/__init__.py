"""The forms in which Java prints and parses: numbers, times, errors, the order of a HashMap."""
