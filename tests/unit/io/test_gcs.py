"""Google Cloud Storage settings from Iceberg's properties."""

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.io.gcs import GCS_REFUSED, gcs_settings
from bergline.io.open_store import open_store


def test_token_and_host_reach_the_store() -> None:
    properties = {
        "gcs.oauth2.token": "hush-hush",
        "gcs.oauth2.token-expires-at": "1700000000000",
        "gcs.project-id": "project",
        "gcs.service.host": "http://localhost:4443",
    }
    opened = open_store("gs", "bucket", properties)
    assert opened.store.config == {
        "bucket": "bucket",
        "bearer_token": "hush-hush",
        "base_url": "http://localhost:4443",
    }
    assert opened.store.client_options["allow_http"] == "true"
    assert "hush-hush" not in repr(opened) + repr(gcs_settings("bucket", properties))


def test_public_bucket_needs_no_credentials() -> None:
    assert open_store("gcs", "bucket", {"gcs.no-auth": "true"}).store.config["skip_signature"] == "true"


@pytest.mark.parametrize(
    ("bucket", "properties", "message"),
    [
        ("a b", {}, "expected the name of a bucket, found `a b`"),
        ("bucket", {"gcs.service.host": "localhost"}, "in property `gcs.service.host`, found `localhost`"),
        ("bucket", {"gcs.no-auth": "perhaps"}, "expected true or false in property `gcs.no-auth`"),
        (
            "bucket",
            {"gcs.oauth2.token": "hush\0"},
            "expected printable ASCII characters in property `gcs.oauth2.token`",
        ),
    ],
)
def test_wrong_value_is_one_clear_error(bucket: str, properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        gcs_settings(bucket, properties)


@pytest.mark.parametrize("name", GCS_REFUSED)
def test_what_we_cannot_do_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"property `{name}` is not supported"):
        gcs_settings("bucket", {name: "value"})
