"""AlterUserScramCredentials: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Bytes, Int8, Int16, Int32, Message, String


class ScramCredentialDeletion(Message):
    """Part of AlterUserScramCredentialsRequest."""

    name: String = ""
    mechanism: Int8 = 0


class ScramCredentialUpsertion(Message):
    """Part of AlterUserScramCredentialsRequest."""

    name: String = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""


class AlterUserScramCredentialsRequest(Message):
    """AlterUserScramCredentials request, version 0."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Message):
    """Part of AlterUserScramCredentialsResponse."""

    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class AlterUserScramCredentialsResponse(Message):
    """AlterUserScramCredentials response, version 0."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
