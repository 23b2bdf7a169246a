"""The choice of each API's version: the highest that both sides know."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client.cluster.connection import Connection
from kafka_client.errors import ErrorCode, KafkaError, error_for
from kafka_client.wire import ApiKey, decode, decode_response_header, encode_request
from kafka_client.wire.api_keys import PRIVATE_FROM
from kafka_client.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME = "millstream"
SOFTWARE_VERSION = "0.2.0"

_HIGHEST: Mapping[ApiKey, int] = {ApiKey.PRODUCE: 12, ApiKey.OFFSET_COMMIT: 9, ApiKey.OFFSET_FETCH: 9}
"""The highest version to use of these APIs: later ones name topics by id only.

Offsets may be committed for topics that do not exist any more, and a producer may go on in a topic that was
created again.
"""


def highest_common(
    api_key: int, versions: tuple[int, int], served: Mapping[int, tuple[int, int]], broker: str = ""
) -> int:
    """Return the highest of our `versions` of an API that is in `served` (API key → range) too.

    Raises KafkaError UNSUPPORTED_VERSION with both ranges if there is none. Brokers do not report
    Millstream's own APIs: our last version is used.
    """
    if api_key >= PRIVATE_FROM:
        return versions[1]
    api = ApiKey(api_key)
    first, last = versions[0], min(versions[1], _HIGHEST.get(api, versions[1]))
    lowest, highest = served.get(api_key, (0, -1))
    version = min(last, highest)
    if version < max(first, lowest):
        theirs = f"{lowest} to {highest}" if highest >= 0 else "none"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{api.name}: we speak versions {first} to {last}, broker {broker} {theirs}",
        )
    return version


async def negotiate(connection: Connection, *, client_id: str, timeout: float) -> None:
    """Request the versions that the broker serves and set `connection.versions`.

    ApiVersions 3 comes first; a broker that does not know it answers error 35 in version 0's form (KIP-511).
    """
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    for version in (3, 0):
        payload = await connection.call(
            lambda correlation_id, v=version: encode_request(request, v, correlation_id, client_id),  # type: ignore[misc]
            timeout=timeout,
        )
        _, pos = decode_response_header(ApiVersionsResponse.API_KEY, version, payload)
        refused = int.from_bytes(payload[pos : pos + 2], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
        response = decode(ApiVersionsResponse, 0 if refused else version, payload, pos)
        if not refused:
            break
    if response.error_code:
        raise error_for(response.error_code, f"ApiVersions asked of {connection.name}")
    connection.versions = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
