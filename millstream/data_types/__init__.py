"""What keys, values and headers are made of: bytes of a record to values, text, and back."""
