"""placeholder"""


class JdbcSink: ...
