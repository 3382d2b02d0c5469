"""Google tokens for one table."""

import json
from collections.abc import Iterator

import pytest
from access_boundary import boundary_allows
from google_sts_server import MACHINE_TOKEN, GoogleStsServer

from bergline.errors import BerglineError, UnavailableError
from bergline.server.credentials.gcs_tokens import GcsVending, access_boundary

PLACES = ["gs://b/w/t", "gcs://b/data/t/", "gs://b/w/t/data", "s3://b/x"]


@pytest.fixture
def google() -> Iterator[GoogleStsServer]:
    with GoogleStsServer() as server:
        yield server


def vending(google: GoogleStsServer, now: list[int], **properties: str) -> GcsVending:
    return GcsVending(properties, sts_url=f"http://{google.host}/v1/token", clock_ms=lambda: now[0])


def test_boundary_opens_each_directory_and_nothing_else() -> None:
    for may_write in (False, True):
        opened = access_boundary(["gs://b/w/t", "gs://c/data"], may_write=may_write)
        for bucket, key in (("b", "w/t/f"), ("c", "data/p=1/f")):
            assert boundary_allows(opened, "get", bucket, key)
            for permission in ("create", "delete"):
                assert boundary_allows(opened, permission, bucket, key) is may_write
        for bucket, key in (("b", "w/t2/f"), ("b", "w/f"), ("b", "data/f"), ("c", "w/t/f"), ("d", "w/t/f"), ("b", "f")):
            assert not boundary_allows(opened, "get", bucket, key), (bucket, key)
        assert boundary_allows(opened, "list", "b", prefix="w/t/metadata/")
        for prefix in ("", "w/", "w/t", "w/t2/", "data/"):
            assert not boundary_allows(opened, "list", "b", prefix=prefix), prefix


@pytest.mark.parametrize(
    "places",
    [
        ["gs://b"],
        ["gs://b/"],
        ["gs://b/t'||true||'"],
        ["gs://b/t\\"],
        ["gs://b/t\n"],
        [f"gs://b/t{n}" for n in range(11)],
    ],
)
def test_directories_that_no_boundary_can_name_are_refused(google: GoogleStsServer, places: list[str]) -> None:
    with pytest.raises(BerglineError, match=r"expected a (directory|key)|expected up to 10 directories"):
        vending(google, [0]).credentials(places, may_write=True)
    assert not google.boundaries


def test_tokens_are_for_one_table_and_one_access_and_live_for_a_time(
    google: GoogleStsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", google.host)
    now = [1_000_000]
    source = vending(google, now, **{"gcs.project-id": "p"})
    assert source.cached_credentials(PLACES, may_write=True) is None
    first = source.credentials(PLACES, may_write=True)
    assert first.expires_ms == now[0] + 1_800_000
    assert [c.prefix for c in first.credentials] == ["gs://b/w/t/", "gcs://b/data/t/"]
    assert first.credentials[0].config == {
        "gcs.project-id": "p",
        "gcs.oauth2.token": "downscoped-1",
        "gcs.oauth2.token-expires-at": str(first.expires_ms),
    }
    assert source.cached_credentials(PLACES, may_write=False) is None
    reading = source.credentials(PLACES, may_write=False)
    assert reading.fingerprint != first.fingerprint
    assert [boundary_allows(b, "create", "b", "w/t/f") for b in google.boundaries] == [True, False]
    now[0] += 899_000
    assert source.credentials(PLACES, may_write=True) is source.cached_credentials(PLACES, may_write=True) is first
    now[0] += 2_000
    assert source.cached_credentials(PLACES, may_write=True) is None
    google.lifetime_s = None  # then it lives as long as the token that it was made from
    assert source.credentials(PLACES, may_write=True).expires_ms == now[0] + 3_000_000
    assert set(google.sources) == {MACHINE_TOKEN}
    assert source.credentials(["s3://b/t", "file:///t"], may_write=True).credentials == ()


def test_token_of_the_server_is_exchanged_and_never_vended(google: GoogleStsServer) -> None:
    given = {"gcs.oauth2.token": "server-token", "gcs.oauth2.token-expires-at": "60000"}
    vended = vending(google, [0], **given).credentials(["gs://b/t"], may_write=True)
    assert google.sources == ["server-token"]
    assert vended.expires_ms == 60_000
    assert "server-token" not in json.dumps([c.config for c in vended.credentials])


def test_no_token_is_said_without_secrets(google: GoogleStsServer) -> None:
    google.refusing = True
    with pytest.raises(UnavailableError, match="says 400") as raised:
        vending(google, [0], **{"gcs.oauth2.token": "server-token"}).credentials(["gs://b/t"], may_write=True)
    assert "server-token" not in str(raised.value)
    gone = GcsVending({"gcs.oauth2.token": "server-token"}, sts_url="http://127.0.0.1:1/v1/token")
    with pytest.raises(UnavailableError, match=r"from 127\.0\.0\.1:1: ConnectionRefusedError"):
        gone.credentials(["gs://b/t"], may_write=True)
