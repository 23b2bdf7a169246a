"""Dispatch: from a request's bytes to the handler of its API, here or on the controller."""
