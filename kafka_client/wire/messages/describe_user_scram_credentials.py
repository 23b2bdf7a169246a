"""DescribeUserScramCredentials: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Int8, Int16, Int32, Message, String


class UserName(Message):
    """Part of DescribeUserScramCredentialsRequest."""

    name: String = ""


class DescribeUserScramCredentialsRequest(Message):
    """DescribeUserScramCredentials request, version 0."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    users: list[UserName] | None = []


class CredentialInfo(Message):
    """Part of DescribeUserScramCredentialsResponse."""

    mechanism: Int8 = 0
    iterations: Int32 = 0


class DescribeUserScramCredentialsResult(Message):
    """Part of DescribeUserScramCredentialsResponse."""

    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = None
    credential_infos: list[CredentialInfo] = []


class DescribeUserScramCredentialsResponse(Message):
    """DescribeUserScramCredentials response, version 0."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    results: list[DescribeUserScramCredentialsResult] = []
