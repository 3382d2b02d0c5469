"""Typed access to storage properties."""

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.io.settings import PropertyReader, StoreSettings, check_endpoint, is_ip_address


def test_first_name_that_is_set_counts() -> None:
    given = PropertyReader({"b": "2", "c": "3", "a": ""})
    assert given.text("a", "b", "c") == "2"
    assert given.text("x") is None


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False)])
def test_booleans_are_case_insensitive(text: str, value: bool) -> None:
    assert PropertyReader({"p": text}).boolean("p") is value


@pytest.mark.parametrize(("text", "duration"), [("5", "5000ms"), ("0.25", "250ms"), ("0.0001", "1ms")])
def test_seconds_are_rounded_to_milliseconds(text: str, duration: str) -> None:
    assert PropertyReader({"p": text}).seconds("p") == duration


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        ("text", "gr\u00fcn", "printable ASCII characters in property `p`, found others"),
        ("boolean", "yes", "true or false in property `p`, found `yes`"),
        ("seconds", "-1", "a number of seconds in property `p`, found `-1`"),
        ("seconds", "0", "a number of seconds"),
        ("endpoint", "host:9000", "an address like `http://host:9000` in property `p`"),
        ("endpoint", "http://me:secret@host", "found another text"),
    ],
)
def test_wrong_value_is_refused_without_showing_secrets(read: str, value: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        getattr(PropertyReader({"p": value}), read)("p")
    assert "secret" not in str(refused.value)


def test_half_of_a_pair_is_refused() -> None:
    assert PropertyReader({"a": "1", "b": "2"}).pair(("a",), ("b",)) == ("1", "2")
    assert PropertyReader({}).pair(("a",), ("b",)) is None
    with pytest.raises(InvalidInputError, match="found only one of them"):
        PropertyReader({"a": "1"}).pair(("a",), ("b",))


def test_unsupported_property_is_refused_with_an_alternative() -> None:
    PropertyReader({"p": "false"}).refuse({"p": "use q"})
    with pytest.raises(UnsupportedError, match="property `p` is not supported") as refused:
        PropertyReader({"p": "x"}).refuse({"p": "use q"})
    assert refused.value.hints == ("use q",)


@pytest.mark.parametrize("value", ["http://host:0", "http://host:70000", "http://1.2.3.4.5", "ftp://host", "http://-x"])
def test_address_that_no_client_accepts_is_refused(value: str) -> None:
    with pytest.raises(InvalidInputError):
        check_endpoint(value, "the test")


def test_ip_addresses_are_told_from_names() -> None:
    assert is_ip_address("http://127.0.0.1:9000")
    assert is_ip_address("http://[::1]:9000")
    assert not is_ip_address("http://localhost:9000")


def test_settings_do_not_show_credentials() -> None:
    shown = repr(StoreSettings("s3", "bucket", {"token": "hidden-1"}, {}, {"secret_access_key": "hidden-2"}))
    assert shown == "StoreSettings(s3, 'bucket')"
