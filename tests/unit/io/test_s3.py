"""S3 settings from Iceberg's properties."""

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.io.open_store import open_store
from bergline.io.s3 import S3_REFUSED, s3_settings

KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "hush-hush"}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def test_nothing_given_leaves_everything_to_the_environment() -> None:
    settings = s3_settings("bucket", {})
    assert (settings.config, settings.client, settings.credential) == ({}, {}, None)


def test_endpoint_region_and_keys() -> None:
    properties = {**KEYS, "s3.endpoint": "http://host:9000/", "s3.region": "eu-central-1", "s3.session-token": "t"}
    settings = s3_settings("bucket", properties)
    assert settings.config["endpoint"] == settings.config["aws_endpoint_url_s3"] == "http://host:9000"
    assert settings.config["region"] == "eu-central-1"
    assert settings.client == {"allow_http": True}
    assert settings.credential == {
        "access_key_id": "key",
        "secret_access_key": "hush-hush",
        "token": "t",
        "expires_at": None,
    }


def test_names_of_the_aws_client_are_second_choice() -> None:
    client = {
        "client.region": "us-west-2",
        "client.access-key-id": "c",
        "client.secret-access-key": "s",
        "client.session-token": "t",
    }
    settings = s3_settings("bucket", client)
    assert settings.config == {"region": "us-west-2"}
    assert settings.credential is not None
    assert settings.credential["access_key_id"] == "c"
    mixed = s3_settings("bucket", {**client, **KEYS, "s3.region": "eu-west-1"})
    assert mixed.config == {"region": "eu-west-1"}
    assert mixed.credential is not None
    assert mixed.credential["access_key_id"] == "key"


@pytest.mark.parametrize(
    ("properties", "virtual"),
    [
        ({}, False),
        ({"s3.path-style-access": "true"}, False),
        ({"s3.path-style-access": "false"}, True),
        ({"s3.force-virtual-addressing": "true"}, True),
        ({"s3.force-virtual-addressing": "False"}, False),
    ],
)
def test_bucket_stands_in_the_path_or_in_the_host(properties: dict[str, str], virtual: bool) -> None:
    config = s3_settings("bucket", {"s3.endpoint": "https://host", **properties}).config
    assert config.get("virtual_hosted_style_request", False) is virtual
    assert config["endpoint"] == ("https://bucket.host" if virtual else "https://host")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", {}),
        ("s3", {"server_side_encryption": "AES256", "sse_kms_key_id": "k"}),
        ("kms", {"server_side_encryption": "aws:kms", "sse_kms_key_id": "k"}),
        ("dsse-kms", {"server_side_encryption": "aws:kms:dsse", "sse_kms_key_id": "k"}),
        ("custom", {"server_side_encryption": "sse-c", "sse_customer_key_base64": "k"}),
    ],
)
def test_encryption_by_javas_names(kind: str, expected: dict[str, str]) -> None:
    assert s3_settings("bucket", {"s3.sse.type": kind, "s3.sse.key": "k"}).config == expected


def test_times_anonymity_and_proxy() -> None:
    properties = {
        "s3.anonymous": "true",
        "s3.connect-timeout": "2.5",
        "s3.request-timeout": "60",
        "s3.proxy-uri": "http://proxy:3128",
    }
    settings = s3_settings("bucket", properties)
    assert settings.config == {"skip_signature": True}
    assert settings.client == {
        "connect_timeout": "2500ms",
        "read_timeout": "60000ms",
        "proxy_url": "http://proxy:3128",
    }


def test_plain_http_endpoint_of_the_environment_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://host:9000")
    assert s3_settings("bucket", {}).client == {"allow_http": True}
    virtual = s3_settings("bucket", {"s3.path-style-access": "false"}).config
    assert virtual["endpoint"] == "http://bucket.host:9000"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nonsense")
    with pytest.raises(InvalidInputError, match="in the environment's AWS_ENDPOINT_URL, found `nonsense`"):
        s3_settings("bucket", {})


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"s3.endpoint": "host:9000"}, "expected an address like `http://host:9000` in property `s3.endpoint`"),
        ({"s3.endpoint": "ftp://host"}, "found `ftp://host`"),
        ({"s3.endpoint": "http://"}, "found `http://`"),
        ({"s3.endpoint": "http://us:hush-hush@host"}, "found another text"),
        ({"s3.endpoint": "http://host:9000?x=1"}, "found `http://host:9000\\?x=1`"),
        ({"s3.endpoint": "http://host:99999"}, "found `http://host:99999`"),
        ({"s3.endpoint": "http://host:0"}, "found `http://host:0`"),
        ({"s3.endpoint": "http://1.2.3.999"}, "found `http://1.2.3.999`"),
        ({"s3.endpoint": "http://[::::1]:80"}, "expected an address"),
        ({"s3.endpoint": "http://a..b"}, "found `http://a..b`"),
        ({"s3.endpoint": "http://1.2.3.4:9", "s3.path-style-access": "false"}, "expected an address with a name"),
        ({"s3.endpoint": "http://[::1]:9", "s3.path-style-access": "false"}, "expected an address with a name"),
        ({"s3.proxy-uri": "http://host:99999"}, "in property `s3.proxy-uri`"),
        ({"s3.anonymous": "yes"}, "expected true or false in property `s3.anonymous`, found `yes`"),
        ({"s3.anonymous": "1"}, "expected true or false"),
        ({"s3.region": "eu central"}, "found `eu central`"),
        ({"s3.path-style-access": "maybe"}, "expected true or false in property `s3.path-style-access`, found `maybe`"),
        ({"s3.path-style-access": "true", "s3.force-virtual-addressing": "true"}, "found both"),
        ({"s3.connect-timeout": "soon"}, "expected a number of seconds in property `s3.connect-timeout`, found `soon`"),
        ({"s3.request-timeout": "0"}, "found `0`"),
        ({"s3.access-key-id": "key"}, "found only one of them"),
        ({"s3.secret-access-key": "hush-hush"}, "found only one of them"),
        ({"s3.session-token": "hush-hush"}, "found only the token"),
        ({**KEYS, "s3.secret-access-key": "hush-hush\n"}, "printable ASCII characters in property `s3.secret-access-k"),
        ({"s3.sse.type": "rot13"}, "expected none or s3 or kms or dsse-kms or custom"),
    ],
)
def test_wrong_value_is_one_clear_error_without_secrets(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        s3_settings("bucket", properties)
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize("bucket", ["a b", "a?b", "a#b", "key:hush-hush@bucket", "ünï", "-x", "a%20b"])
def test_name_that_no_bucket_has_is_refused(bucket: str) -> None:
    with pytest.raises(InvalidInputError, match="expected the name of an S3 bucket") as caught:
        s3_settings(bucket, {})
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize("bucket", ["a..b", "a.", "a-"])
def test_bucket_that_makes_no_host_name_is_refused(bucket: str) -> None:
    with pytest.raises(InvalidInputError, match=f"with bucket `{bucket}`"):
        s3_settings(bucket, {"s3.endpoint": "http://host", "s3.path-style-access": "false"})


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:9", "http://[::1]:65535", "https://a-b.c_d.example./x", "http://h"]
)
def test_addresses_of_every_kind(endpoint: str) -> None:
    assert s3_settings("bucket", {"s3.endpoint": endpoint}).config["endpoint"] == endpoint


@pytest.mark.parametrize("name", S3_REFUSED)
def test_what_we_cannot_do_is_refused_with_another_way(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"property `{name}` is not supported") as caught:
        s3_settings("bucket", {name: "true"})
    assert caught.value.hints
    s3_settings("bucket", {name: "false"})


def test_store_is_built_and_shows_no_secret() -> None:
    properties = {**KEYS, "s3.endpoint": "http://host:9000", "s3.region": "eu-central-1"}
    opened = open_store("s3a", "bucket", properties)
    assert opened.store.config["endpoint"] == "http://host:9000"
    assert opened.store.config["bucket"] == "bucket"
    assert opened.store.retry_config["max_retries"] > 0
    assert opened.once.retry_config["max_retries"] == 0
    assert "hush-hush" not in repr(opened) + repr(s3_settings("bucket", properties)) + repr(opened.store.config)
