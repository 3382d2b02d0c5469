"""The storage properties that a user gives."""

import pytest

import bergline
from bergline.errors import InvalidInputError
from bergline.io.store_properties import STORE_PROPERTIES, check_store_properties


def test_every_known_property_is_taken() -> None:
    given = {**dict.fromkeys(STORE_PROPERTIES, "x"), "adls.sas-token.account": "x", "s3.signer": "S3V4RestSigner"}
    assert check_store_properties(given) == given


def test_unknown_name_lists_the_near_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"found `s3\.acces-key-id`") as caught:
        bergline.connect("memory:", properties={"s3.acces-key-id": "hush-hush"})
    assert "`s3.access-key-id`" in caught.value.hints[0]
    assert "hush-hush" not in str(caught.value)


def test_value_that_is_no_text_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInputError, match=r"expected text for property `s3\.secret-access-key`, found bytes"):
        bergline.connect("memory:", properties={"s3.secret-access-key": b"hush-hush"})  # type: ignore[dict-item]
