"""How the changes that the controller decides come to the brokers: one stream for each, a snapshot and then
what changed, numbered; neither end trusts the network to deliver once, in order, or at all.

`outbox` is the controller's end, `inbox` a broker's. Neither knows sockets, clocks or the wire's bytes.
"""
