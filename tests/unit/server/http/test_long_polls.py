"""Requests that wait."""

import asyncio

from bergline.governance.events.protocol import LIST_EVENTS
from bergline.server.http.long_polls import LongPolls
from bergline.server.http.request import Request
from bergline.server.http.response import Response


def asking(wait: str) -> Request:
    return Request(LIST_EVENTS, {}, {"wait": wait}, {}, b"", ".")


def page(body: bytes, position: int, newest: int) -> Response:
    return Response(200, body, {"bergline-position": str(position), "bergline-newest-position": str(newest)})


def asked(answers: list[Response], wait: str = "20", most_waiting: int = 10) -> tuple[Response, int]:
    """The response, and how many answers are left."""

    async def ask() -> Response:
        return answers.pop(0)

    return asyncio.run(LongPolls(0.001, most_waiting).run(asking(wait), ask)), len(answers)


def test_it_is_asked_again_until_there_is_something() -> None:
    nothing, something = page(b"[]", 1, 1), page(b"[{}]", 2, 2)
    assert asked([nothing, nothing, something, nothing]) == (something, 1)


def test_nothing_is_waited_for_without_a_wait_or_where_too_many_wait() -> None:
    nothing = page(b"[]", 1, 1)
    assert asked([nothing, nothing], wait="0") == (nothing, 1)
    assert asked([nothing, nothing], most_waiting=0) == (nothing, 1)


def test_page_that_a_filter_left_empty_is_no_end_and_errors_are_answers() -> None:
    for response in (page(b"[]", 1, 2), Response(410, b"{}")):
        assert asked([response, response]) == (response, 1)


def test_end_of_the_server_ends_the_wait() -> None:
    nothing, polls = page(b"[]", 1, 1), LongPolls(0.001)
    asked_for = 0

    async def ask() -> Response:
        nonlocal asked_for
        asked_for += 1
        if asked_for == 3:
            polls.end()
        return nothing

    assert asyncio.run(polls.run(asking("20"), ask)) == nothing
    assert asked_for == 3
