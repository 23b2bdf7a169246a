"""An application's HTTP view: state, tasks, lag, restores, the topology's picture, metrics, and queries.

It uses the application through `application.Application`. The runtime starts it if `http.listener` is set.
"""
