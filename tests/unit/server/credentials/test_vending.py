"""Credentials that a server hands out."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgi_client import AsgiClient
from glue_server import GlueServer
from iam_policy import allows
from sts_server import StsServer

from bergline.errors import InvalidInputError, RefusedError, UnavailableError
from bergline.server.credentials.sts import StsVending, partition_of, policy, render_policy
from bergline.server.credentials.vending import StaticVending, prefixes_of, requests_credentials
from bergline.server.opening import VendingConfig, open_server
from bergline.server.start import serve

ROLE = "arn:aws:iam::123456789012:role/tables"
WISH = {"X-Iceberg-Access-Delegation": "vended-credentials"}
PROPERTIES = {"s3.access-key-id": "server-key", "s3.secret-access-key": "server-secret", "s3.region": "eu-west-1"}


@pytest.mark.parametrize(
    ("places", "prefixes"),
    [
        (["s3://b/w/t"], ("s3://b/w/t/",)),
        (["s3://b/w/t/", "s3://b/w/t/data"], ("s3://b/w/t/",)),
        (["s3://b/w/t", "s3://b/w/t2"], ("s3://b/",)),
        (["s3://b/w/t", "s3a://b/x", "s3://c/data"], ("s3://b/w/t/", "s3a://b/x/", "s3://c/data/")),
        ([], ()),
    ],
)
def test_each_bucket_has_one_prefix(places: list[str], prefixes: tuple[str, ...]) -> None:
    assert prefixes_of(places) == prefixes


@pytest.mark.parametrize(
    ("header", "asks"),
    [
        (None, False),
        ("", False),
        ("remote-signing", False),
        ("vended-credentials", True),
        ("a, Vended-Credentials", True),
    ],
)
def test_keys_are_for_those_who_ask(header: str | None, asks: bool) -> None:
    assert requests_credentials({} if header is None else {"x-iceberg-access-delegation": header}) is asks


def test_each_store_has_its_own_properties() -> None:
    vending = StaticVending({**PROPERTIES, "gcs.oauth2.token": "t", "adls.account-key": "k"})
    found = vending.credentials(["s3://b/t", "gs://b/t", "abfss://c@a.dfs.core.windows.net/t", "file:///t"]).credentials
    assert [(c.prefix.partition(":")[0], sorted(c.config)) for c in found] == [
        ("s3", ["client.region", "s3.access-key-id", "s3.region", "s3.secret-access-key"]),
        ("gs", ["gcs.oauth2.token"]),
        ("abfss", ["adls.account-key"]),
    ]


def test_without_keys_none_are_handed_out() -> None:
    with pytest.raises(InvalidInputError, match="expected credentials"):
        StaticVending({"s3.region": "eu-west-1"})


OBJECT = "arn:aws:s3:::b/{}"
READING, LISTING = "s3:GetObject", "s3:ListBucket"


def test_policy_opens_each_directory_and_nothing_else() -> None:
    opened = policy(["s3://b/w/t", "s3a://b/data/t", "s3://c/x"])
    for key in ("w/t/metadata/1.json", "data/t/part=1/f.parquet"):
        for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"):
            assert allows(opened, action, OBJECT.format(key)), (action, key)
        assert not allows(opened, "s3:PutObjectAcl", OBJECT.format(key))
        assert not allows(opened, "s3:GetObject", f"arn:aws:s3:::c/{key}")
    for key in ("w/t", "w/t2/f", "w/other/f", "data/f", "data/t2/f", "x/f", "f", "w/", "w/t.parquet"):
        assert not allows(opened, READING, OBJECT.format(key)), key
    assert allows(opened, READING, "arn:aws:s3:::c/x/f")
    for prefix, listed in {"w/t/": True, "w/t/data/": True, "data/t/": True}.items():
        assert allows(opened, LISTING, "arn:aws:s3:::b", s3_prefix=prefix) is listed
        assert not allows(opened, LISTING, "arn:aws:s3:::c", s3_prefix=prefix)
    for prefix in ("", "w/", "w/t", "w/t2/", "data/", "x/"):
        assert not allows(opened, LISTING, "arn:aws:s3:::b", s3_prefix=prefix), prefix
    assert not allows(opened, LISTING, "arn:aws:s3:::b")
    assert allows(opened, "s3:GetBucketLocation", "arn:aws:s3:::b")


def test_no_character_of_a_directory_stands_for_others() -> None:
    opened = policy(["s3://b/w/o*d?$/${aws:username}"])
    assert allows(opened, READING, OBJECT.format("w/o*d?$/${aws:username}/f"))
    for key in ("w/oxxd?$/${aws:username}/f", "w/o*dx$/${aws:username}/f", "w/o*d?$/ann/f"):
        assert not allows(opened, READING, OBJECT.format(key)), key
    assert allows(opened, LISTING, "arn:aws:s3:::b", s3_prefix="w/o*d?$/${aws:username}/data")
    assert not allows(opened, LISTING, "arn:aws:s3:::b", s3_prefix="w/oxxd?$/${aws:username}/data")


def test_policies_are_for_the_part_of_aws_that_the_role_is_in() -> None:
    assert partition_of(ROLE) == "aws"
    text = render_policy(["s3://b/t"], ROLE.replace("arn:aws:", "arn:aws-cn:"))
    assert "arn:aws-cn:s3:::b/t/*" in text


def test_keys_are_not_handed_out_to_other_machines_without_tokens(tmp_path: Path) -> None:
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", properties=PROPERTIES, vend=VendingConfig())
    with pytest.raises(RefusedError, match="hand out credentials on"):
        serve(context, "0.0.0.0", 0, anonymous=True, say=print)  # noqa: S104
    context.catalog.close()


def test_tables_on_disk_need_no_keys(tmp_path: Path) -> None:
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", properties=PROPERTIES, vend=VendingConfig())
    with AsgiClient(context) as ask:
        ask.namespace("db")
        ask.table()
        for _ in range(2):
            told = ask("GET", "/v1/namespaces/db/tables/orders", headers=WISH)
            assert "storage-credentials" not in told.json
        assert ask("GET", "/v1/namespaces/db/tables/orders/credentials").json == {"storage-credentials": []}
    context.catalog.close()


@pytest.fixture
def sts(glue_server: GlueServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS STS, which moto has too."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{glue_server.port}")


@pytest.fixture
def asked_sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[StsServer]:
    """AWS STS that keeps what it is asked for."""
    with StsServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.uri)
        yield server


def test_a_role_is_assumed_for_the_directories_of_one_table(asked_sts: StsServer) -> None:
    vending = StsVending(PROPERTIES, ROLE, 900)
    keys = vending.credentials(["s3://b/w/t/", "s3://b/data/été", "s3://b/w/t/data", "file:///t"])
    (opened,) = asked_sts.policies
    assert {s["Resource"] for s in opened["Statement"]} == {
        "arn:aws:s3:::b/w/t/*",
        "arn:aws:s3:::b/data/été/*",
        "arn:aws:s3:::b",
    }
    assert allows(opened, "s3:PutObject", OBJECT.format("data/été/f"))
    assert not allows(opened, READING, OBJECT.format("w/other/f"))
    assert [c.prefix for c in keys.credentials] == ["s3://b/"]  # where clients use them; Java takes one for each bucket
    vending.credentials(["s3://b/日本/t"])
    assert allows(asked_sts.policies[1], READING, OBJECT.format("日本/t/f"))


@pytest.mark.parametrize("places", [["s3://b"], ["s3://b/"], ["s3://b/t", "s3://c/"]])
def test_no_keys_open_a_whole_bucket(asked_sts: StsServer, places: list[str]) -> None:
    with pytest.raises(RefusedError, match="expected a directory below a bucket"):
        StsVending(PROPERTIES, ROLE, 900).credentials(places)
    assert not asked_sts.policies


def test_directories_that_no_policy_can_name_are_refused(asked_sts: StsServer) -> None:
    vending = StsVending(PROPERTIES, ROLE, 900)
    with pytest.raises(RefusedError, match=r"at most 2,048 characters\), found 2,"):
        vending.credentials([f"s3://b/{'x' * 1000}"])
    asked_sts.refusing = "PackedPolicyTooLarge"
    with pytest.raises(RefusedError, match="AWS STS says PackedPolicyTooLarge"):
        vending.credentials(["s3://b/t"])
    asked_sts.refusing = "AccessDenied"
    with pytest.raises(UnavailableError, match="AWS STS says AccessDenied"):
        vending.credentials(["s3://b/t"])


@pytest.mark.usefixtures("sts")
def test_keys_of_a_role_live_for_a_time_and_are_given_again_for_half_of_it() -> None:
    now = [0]
    vending = StsVending(PROPERTIES, ROLE, 900, clock_ms=lambda: now[0])
    places = ["s3://b/w/t"]
    assert vending.cached_credentials(places) is None
    first = vending.credentials(places)
    assert first.expires_ms
    (credential,) = first.credentials
    config = credential.config
    assert credential.prefix == "s3://b/w/t/"
    assert config["s3.session-token-expires-at-ms"] == str(first.expires_ms)
    assert config["s3.access-key-id"] != PROPERTIES["s3.access-key-id"]
    assert config["s3.session-token"]
    assert config["client.region"] == "eu-west-1"
    assert "server-secret" not in json.dumps(config)
    now[0] = first.expires_ms - 500_000
    assert vending.credentials(places) is vending.cached_credentials(places) is first
    assert vending.credentials(["s3://b/w/other"]).credentials != first.credentials
    now[0] = first.expires_ms - 400_000
    assert vending.cached_credentials(places) is None
    second = vending.credentials(places)
    assert second.fingerprint != first.fingerprint
    assert vending.credentials(["file:///t"]).credentials == ()


@pytest.mark.usefixtures("sts")
def test_answers_with_keys_that_expire_say_where_to_renew_them(tmp_path: Path) -> None:
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", properties=PROPERTIES, vend=VendingConfig(ROLE))
    assert context.vending
    keys = context.vending.credentials(["s3://b/w/t"])
    end = context.loads.suffix_with_credentials(keys, "v1/namespaces/db/tables/t/credentials")
    told = json.loads(context.loads.with_suffix(b'{"metadata":{},"config":{}}', end))
    assert told["config"]["client.refresh-credentials-endpoint"] == "v1/namespaces/db/tables/t/credentials"
    assert told["config"]["s3.session-token"] == told["storage-credentials"][0]["config"]["s3.session-token"]
    context.catalog.close()


def test_a_role_that_cannot_be_assumed_is_said_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(UnavailableError, match="AWS STS says EndpointConnectionError") as raised:
        StsVending(PROPERTIES, ROLE, 900).credentials(["s3://b/t"])
    assert "server-secret" not in str(raised.value)
    with pytest.raises(InvalidInputError, match="15 minutes to 12 hours"):
        StsVending(PROPERTIES, ROLE, 60)
