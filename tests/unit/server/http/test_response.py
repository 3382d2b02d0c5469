"""Responses of handlers."""

from bergline.server.http.response import NO_CONTENT, HeaderName, Response, json_response


def test_json_response_has_the_encoded_value() -> None:
    assert json_response({"a": [1]}, status=201, headers={"etag": "x"}) == Response(201, b'{"a":[1]}', {"etag": "x"})
    assert (NO_CONTENT.status, NO_CONTENT.body) == (204, b"")


def test_header_name_keeps_its_case() -> None:
    assert HeaderName(b"ETag").lower() == b"ETag"
