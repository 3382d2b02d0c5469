"""Errors as responses of the protocol."""

import json

from bergline.errors import AuthenticationError, InvalidInputError, NotFoundError, UnavailableError
from bergline.server.http.errors import RequestRefused, error_response, response_for


def test_error_has_the_protocols_body_with_its_hints() -> None:
    response = response_for(InvalidInputError("expected a, found b", hints=["say a"]))
    assert json.loads(response.body) == {
        "error": {"message": "expected a, found b; say a", "type": "IllegalArgumentException", "code": 400}
    }


def test_missing_table_and_missing_view_have_types_of_their_own() -> None:
    found = [
        json.loads(response_for(NotFoundError(f"no {kind}", kind=kind, name="db.t"), kind).body)["error"]["type"]
        for kind in ("table", "view")
    ]
    assert found == ["NoSuchTableException", "NoSuchViewException"]


def test_statuses_that_need_a_header_have_it() -> None:
    assert response_for(AuthenticationError("no")).headers["www-authenticate"] == "Bearer"
    assert response_for(UnavailableError("later")).headers["retry-after"] == "1"


def test_long_messages_are_cut() -> None:
    message = json.loads(error_response(400, "BadRequestException", "x" * 10_000).body)["error"]["message"]
    assert message == "x" * 8000 + "…"


def test_refused_request_carries_its_response() -> None:
    response = RequestRefused(413, "BadRequestException", "too large", {"connection": "close"}).response
    assert (response.status, response.headers) == (413, {"connection": "close"})
