"""An application's HTTP view: state, tasks, lag, restores, the topology's picture, metrics, and queries.

It sees the application through `application.Application`; the runtime starts it where `http.listener` is set.
"""
