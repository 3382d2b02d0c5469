"""Bodies of remote signing: a request to the object store that the client wants to send, and its signature."""

import msgspec


class RemoteSignRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request to be signed; `body` is there where it says what the request changes."""

    region: str
    uri: str
    method: str
    headers: dict[str, tuple[str, ...]]
    properties: dict[str, str] | None = None
    body: str | None = None
    provider: str | None = None


class RemoteSignResponse(msgspec.Struct, frozen=True):
    """The address to send the request to, and the headers to add to its own."""

    uri: str
    headers: dict[str, tuple[str, ...]]
