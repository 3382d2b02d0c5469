"""How AWS Glue is named: by URI and by properties."""

import sys
from collections.abc import Mapping
from typing import Any

import pytest

import bergline
from bergline.catalog.glue.glue_store import open_client
from bergline.catalog.glue.settings import glue_settings
from bergline.errors import InvalidInputError, UnsupportedError

KEYS = {"glue.access-key-id": "AKIA", "glue.secret-access-key": "hush"}


def test_region_and_catalog_stand_in_the_uri_or_in_properties() -> None:
    for settings in (
        glue_settings("glue://us-east-1/123456789012", {}),
        glue_settings("glue://", {"glue.region": "us-east-1", "glue.id": "123456789012"}),
        glue_settings("glue://us-east-1", {"glue.region": "us-east-1", "glue.id": "123456789012"}),
    ):
        assert (settings.region, settings.catalog_id) == ("us-east-1", "123456789012")
    assert glue_settings("glue://", {"client.region": "eu-west-1"}).region == "eu-west-1"
    assert glue_settings("glue://us-east-1/1234:s3tablescatalog/b", {}).catalog_id == "1234:s3tablescatalog/b"


def test_what_is_not_given_is_left_to_the_environment() -> None:
    settings = glue_settings("glue://", {})
    assert (settings.region, settings.catalog_id, settings.credentials, settings.endpoint, settings.profile) == (
        None,
    ) * 5
    assert (settings.max_retries, settings.skip_archive, settings.any_name) == (10, True, False)


def test_keys_of_glue_come_before_those_of_all_clients_and_never_mix() -> None:
    client = {"client.access-key-id": "c", "client.secret-access-key": "d", "client.session-token": "e"}
    assert glue_settings("glue://", {**KEYS, **client}).credentials == ("AKIA", "hush", None)
    assert glue_settings("glue://", client).credentials == ("c", "d", "e")


@pytest.mark.parametrize(
    ("uri", "properties", "message"),
    [
        ("glue:", {}, "expected a catalog like `glue://`"),
        ("glue:us-east-1", {}, "expected a catalog like `glue://`"),
        ("glue://US EAST", {}, "expected a catalog like `glue://`"),
        ("glue://us-east-1/1?x=1", {}, "expected a catalog like `glue://`"),
        ("glue://us-east-1", {"glue.region": "eu-west-1"}, "one value for `glue.region`"),
        ("glue://us-east-1/1", {"glue.id": "2"}, "one value for `glue.id`"),
        ("glue://", {"glue.region": "Europe"}, "a region like `eu-central-1`"),
        ("glue://", {"glue.regoin": "x"}, "a property of Glue such as `glue.region`, found `glue.regoin`"),
        ("glue://", {"glue.endpoint": "localhost"}, "an address like"),
        ("glue://", {"glue.access-key-id": "x"}, "found only one of them"),
        ("glue://", {"glue.session-token": "x"}, "found only the token"),
        ("glue://", {**KEYS, "glue.profile-name": "x"}, "found both"),
        ("glue://", {"glue.skip-archive": "maybe"}, "true or false"),
        ("glue://", {"glue.max-retries": "-1"}, "a number up to 100"),
        ("glue://", {"glue.max-retries": "101"}, "a number up to 100"),
        ("glue://", {"glue.id": 12}, "text for property `glue.id`, found int"),
    ],
)
def test_bad_settings_say_what_is_wrong(uri: str, properties: Mapping[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        bergline.connect(uri, warehouse="s3://bucket/wh", properties=properties)


@pytest.mark.parametrize("name", ["glue.lakeformation-enabled", "glue.retry-mode"])
def test_what_cannot_be_done_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        glue_settings("glue://", {name: "true"})


def test_storage_properties_are_checked_too() -> None:
    with pytest.raises(InvalidInputError, match=r"such as `s3.endpoint`, found `s3.endpiont`"):
        bergline.connect("glue://us-east-1", warehouse="s3://bucket/wh", properties={"s3.endpiont": "x"})


def test_secrets_are_not_shown() -> None:
    assert "hush" not in repr(glue_settings("glue://us-east-1", KEYS))


def test_region_must_come_from_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(InvalidInputError, match="cannot open AWS Glue: You must specify a region") as caught:
        open_client(glue_settings("glue://", KEYS))
    assert caught.value.hints == ("write glue://us-east-1, or set glue.region",)


def test_unknown_profile_is_named() -> None:
    with pytest.raises(InvalidInputError, match="nobody"):
        open_client(glue_settings("glue://us-east-1", {"glue.profile-name": "nobody"}))


def test_missing_boto3_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(UnsupportedError, match="expected the package boto3") as caught:
        bergline.connect("glue://us-east-1", warehouse="s3://bucket/wh")
    assert caught.value.hints == ("pip install 'boto3>=1.35', the extra `glue` of bergline",)
