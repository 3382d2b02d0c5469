"""Credentials of a role that is assumed for one table."""

import json
from collections.abc import Iterator

import pytest

from bergline.errors import InvalidInputError, RefusedError, UnavailableError
from bergline.governance.grants.file_actions import FileActions
from bergline.server.credentials.sts import StsVending, partition_of, policy, render_policy, session_name
from support.models.iam_policy import allows
from support.servers.sts_server import StsServer

ROLE = "arn:aws:iam::123456789012:role/tables"
PROPERTIES = {"s3.access-key-id": "server-key", "s3.secret-access-key": "server-secret", "s3.region": "eu-west-1"}
OBJECT = "arn:aws:s3:::b/{}"
READING, LISTING = "s3:GetObject", "s3:ListBucket"


def test_policy_opens_each_directory_and_nothing_else() -> None:
    opened = policy(["s3://b/w/t", "s3a://b/data/t", "s3://c/x"], FileActions.DELETE)
    for key in ("w/t/metadata/m0.avro", "data/t/part=1/f.parquet"):
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


@pytest.mark.parametrize("actions", list(FileActions))
def test_policy_denies_files_of_the_server_and_deletions_without_the_right(actions: FileActions) -> None:
    opened = policy(["s3://b/w/t", "s3://b/data/t"], actions)
    for name in ("1-a.metadata.json", "1-a.gz.metadata.json", "1-a.metadata.json.gz", "version-hint.text"):
        key = OBJECT.format(f"w/t/metadata/{name}")
        assert allows(opened, READING, key)
        for action in ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"):
            assert not allows(opened, action, key), (action, key)
    key = OBJECT.format("data/t/f.parquet")
    assert allows(opened, "s3:PutObject", key) is (actions >= FileActions.WRITE)
    assert allows(opened, "s3:DeleteObject", key) is (actions >= FileActions.DELETE)


def test_policy_of_a_reader_reads_and_lists_and_nothing_else() -> None:
    opened = policy(["s3://b/w/t", "s3://b/data/t", "s3://c/x"], FileActions.READ)
    actions = {a for s in opened["Statement"] for a in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])}
    assert actions == {READING, LISTING}
    assert [s["Resource"] for s in opened["Statement"] if s["Action"] == [READING]] == [
        "arn:aws:s3:::b/w/t/*",
        "arn:aws:s3:::b/data/t/*",
        "arn:aws:s3:::c/x/*",
    ]
    for prefix, is_listed in {"w/t/": True, "data/t/p=1/": True, "": False, "w/": False, "w/t2/": False}.items():
        assert allows(opened, LISTING, "arn:aws:s3:::b", s3_prefix=prefix) is is_listed, prefix
    assert not allows(opened, LISTING, "arn:aws:s3:::b")


def test_keys_to_read_are_never_those_to_write(asked_sts: StsServer) -> None:
    vending = StsVending(PROPERTIES, ROLE, 900)
    places = ["s3://b/w/t"]
    writing = vending.credentials(places, FileActions.DELETE, principal="ann")
    assert vending.cached_credentials(places, FileActions.READ, principal="ann") is None
    reading = vending.credentials(places, FileActions.READ, principal="ann")
    assert reading.fingerprint != writing.fingerprint
    assert vending.cached_credentials(places, FileActions.READ, principal="ann") is reading
    assert vending.cached_credentials(places, FileActions.DELETE, principal="ann") is writing
    assert [allows(p, "s3:PutObject", OBJECT.format("w/t/f")) for p in asked_sts.policies] == [True, False]


def test_keys_are_never_shared_and_their_sessions_carry_the_principal(asked_sts: StsServer) -> None:
    vending = StsVending(PROPERTIES, ROLE, 900)
    principals = ["ann", "corp:ann", "corp-ann", "日本", "a" * 255, "a" * 254 + "b", "x y\n/*", "anonymous"]
    fingerprints = set()
    for principal in principals:
        assert vending.cached_credentials(["s3://b/t"], FileActions.DELETE, principal=principal) is None
        fingerprints.add(vending.credentials(["s3://b/t"], FileActions.DELETE, principal=principal).fingerprint)
    assert len(fingerprints) == len(set(asked_sts.sessions)) == len(principals)
    assert asked_sts.sessions == [session_name(principal) for principal in principals]
    assert [name.rpartition("-")[0] for name in asked_sts.sessions[:4]] == [
        "bergline-ann",
        "bergline-corp-ann",
        "bergline-corp-ann",
        "bergline---",
    ]
    assert max(map(len, asked_sts.sessions)) == 64


def test_keys_of_kms_are_used_through_s3_alone(asked_sts: StsServer) -> None:
    key, other = (f"arn:aws:kms:eu-west-1:123456789012:key/{number}" for number in (1, 2))
    vending = StsVending(PROPERTIES, ROLE, 900, kms_keys=[key])
    for actions in (FileActions.WRITE, FileActions.READ):
        vending.credentials(["s3://b/t"], actions, principal="ann")
    through = {"kms_ViaService": "s3.eu-west-1.amazonaws.com"}
    for opened, writes in zip(asked_sts.policies, (True, False), strict=True):
        assert allows(opened, "kms:Decrypt", key, **through)
        assert allows(opened, "kms:GenerateDataKey", key, **through) is writes
        for action in (
            "kms:Decrypt",
            "kms:GenerateDataKey",
            "kms:Encrypt",
            "kms:CreateGrant",
            "kms:ScheduleKeyDeletion",
        ):
            assert not allows(opened, action, other, **through), action
            assert not allows(opened, action, key), action
            assert not allows(opened, action, key, kms_ViaService="ebs.eu-west-1.amazonaws.com"), action
    without = policy(["s3://b/t"], FileActions.DELETE)
    assert not allows(without, "kms:Decrypt", key, **through)


def test_no_character_of_a_directory_stands_for_others() -> None:
    opened = policy(["s3://b/w/o*d?$/${aws:username}"], FileActions.DELETE)
    assert allows(opened, READING, OBJECT.format("w/o*d?$/${aws:username}/f"))
    for key in ("w/oxxd?$/${aws:username}/f", "w/o*dx$/${aws:username}/f", "w/o*d?$/ann/f"):
        assert not allows(opened, READING, OBJECT.format(key)), key
    assert allows(opened, LISTING, "arn:aws:s3:::b", s3_prefix="w/o*d?$/${aws:username}/data")
    assert not allows(opened, LISTING, "arn:aws:s3:::b", s3_prefix="w/oxxd?$/${aws:username}/data")


def test_policies_are_for_the_part_of_aws_that_the_role_is_in() -> None:
    assert partition_of(ROLE) == "aws"
    text = render_policy(["s3://b/t"], ROLE.replace("arn:aws:", "arn:aws-cn:"), FileActions.DELETE)
    assert "arn:aws-cn:s3:::b/t/*" in text


@pytest.fixture
def asked_sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[StsServer]:
    """AWS STS that keeps what it is asked for."""
    with StsServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.uri)
        yield server


def test_a_role_is_assumed_for_the_directories_of_one_table(asked_sts: StsServer) -> None:
    vending = StsVending(PROPERTIES, ROLE, 900)
    keys = vending.credentials(
        ["s3://b/w/t/", "s3://b/data/été", "s3://b/w/t/data", "file:///t"], FileActions.DELETE, principal="ann"
    )
    (opened,) = asked_sts.policies
    assert {s["Resource"] for s in opened["Statement"] if s["Effect"] == "Allow"} == {
        "arn:aws:s3:::b/w/t/*",
        "arn:aws:s3:::b/data/été/*",
        "arn:aws:s3:::b",
    }
    assert allows(opened, "s3:PutObject", OBJECT.format("data/été/f"))
    assert not allows(opened, READING, OBJECT.format("w/other/f"))
    assert [c.prefix for c in keys.credentials] == ["s3://b/"]  # where clients use them; Java takes one for each bucket
    vending.credentials(["s3://b/日本/t"], FileActions.DELETE, principal="ann")
    assert allows(asked_sts.policies[1], READING, OBJECT.format("日本/t/f"))


@pytest.mark.parametrize("places", [["s3://b"], ["s3://b/"], ["s3://b/t", "s3://c/"]])
def test_no_keys_open_a_whole_bucket(asked_sts: StsServer, places: list[str]) -> None:
    with pytest.raises(RefusedError, match="expected a directory below a bucket"):
        StsVending(PROPERTIES, ROLE, 900).credentials(places, FileActions.DELETE, principal="ann")
    assert not asked_sts.policies


def test_directories_that_no_policy_can_name_are_refused(asked_sts: StsServer) -> None:
    vending = StsVending(PROPERTIES, ROLE, 900)
    with pytest.raises(RefusedError, match=r"at most 2,048 characters\), found 2,"):
        vending.credentials([f"s3://b/{'x' * 1000}"], FileActions.DELETE, principal="ann")
    asked_sts.refusing = "PackedPolicyTooLarge"
    with pytest.raises(RefusedError, match="AWS STS says PackedPolicyTooLarge"):
        vending.credentials(["s3://b/t"], FileActions.DELETE, principal="ann")
    asked_sts.refusing = "AccessDenied"
    with pytest.raises(UnavailableError, match="AWS STS says AccessDenied"):
        vending.credentials(["s3://b/t"], FileActions.DELETE, principal="ann")


@pytest.mark.usefixtures("sts")
def test_keys_of_a_role_live_for_a_time_and_are_given_again_for_half_of_it() -> None:
    now = [0]
    vending = StsVending(PROPERTIES, ROLE, 900, clock_ms=lambda: now[0])
    places = ["s3://b/w/t"]
    assert vending.cached_credentials(places, FileActions.DELETE, principal="ann") is None
    first = vending.credentials(places, FileActions.DELETE, principal="ann")
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
    assert (
        vending.credentials(places, FileActions.DELETE, principal="ann")
        is vending.cached_credentials(places, FileActions.DELETE, principal="ann")
        is first
    )
    assert vending.credentials(["s3://b/w/other"], FileActions.DELETE, principal="ann").credentials != first.credentials
    now[0] = first.expires_ms - 400_000
    assert vending.cached_credentials(places, FileActions.DELETE, principal="ann") is None
    second = vending.credentials(places, FileActions.DELETE, principal="ann")
    assert second.fingerprint != first.fingerprint
    assert vending.credentials(["file:///t"], FileActions.DELETE, principal="ann").credentials == ()


def test_a_role_that_cannot_be_assumed_is_said_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(UnavailableError, match="AWS STS says EndpointConnectionError") as raised:
        StsVending(PROPERTIES, ROLE, 900).credentials(["s3://b/t"], FileActions.DELETE, principal="ann")
    assert "server-secret" not in str(raised.value)
    with pytest.raises(InvalidInputError, match="15 minutes to 12 hours"):
        StsVending(PROPERTIES, ROLE, 60)
