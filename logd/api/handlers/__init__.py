"""Kafka's APIs, one file each: the versions served on top, then the handler.

A module here has ``REQUEST`` (the message class), and ``handle(request, context)``, plain or ``async``,
which returns the response message.
"""
