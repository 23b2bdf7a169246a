"""Windows: their definitions, when they close, and operators that fill or deduplicate them."""
