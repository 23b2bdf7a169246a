"""The feed of the controller's changes to the brokers, one stream for each broker.

A stream is a snapshot and then the changes after it, in numbered updates. Neither end relies on the network
to deliver an update once, in order, or at all. `outbox` is the controller's end, `inbox` a broker's. Neither
uses sockets, clocks or wire encodings.
"""
