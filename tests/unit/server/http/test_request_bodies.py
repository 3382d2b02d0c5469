"""RequestBodies, all together."""

import asyncio
from typing import Any

import pytest
from starlette.datastructures import Headers

from bergline.server.http.errors import RequestRefused
from bergline.server.http.request_bodies import RequestBodies
from bergline.server.http.settings import ServerSettings

SETTINGS = ServerSettings(max_body_bytes=100, max_held_bytes=150, body_timeout_s=5)


def read(bodies: RequestBodies, *parts: bytes | None) -> bytes:
    """A body that comes in parts; None is a sender who goes away."""
    coming = [
        {"type": "http.disconnect"} if part is None else {"type": "http.request", "body": part, "more_body": n > 0}
        for n, part in zip(range(len(parts) - 1, -1, -1), parts, strict=True)
    ]

    async def receive() -> Any:
        return coming.pop(0)

    return asyncio.run(bodies.read(Headers(), receive, SETTINGS, 100))


def test_bodies_of_all_requests_together_are_bounded() -> None:
    bodies = RequestBodies()
    first = read(bodies, b"a" * 50, b"b" * 50)
    with pytest.raises(RequestRefused) as refused:
        read(bodies, b"c" * 40, b"d" * 40)
    assert refused.value.response.status == 503
    assert refused.value.response.headers["retry-after"] == "1"
    assert read(bodies, b"e" * 50) == b"e" * 50
    bodies.release(first)
    assert len(read(bodies, b"f" * 100)) == 100


@pytest.mark.parametrize("parts", [(b"a" * 60, b"b" * 60), (b"a" * 99, None)])
def test_body_that_was_refused_is_held_no_more(parts: tuple[bytes | None, ...]) -> None:
    bodies = RequestBodies()
    for _ in range(5):
        with pytest.raises(RequestRefused):
            read(bodies, *parts)
    assert len(read(bodies, b"c" * 100)) == 100
