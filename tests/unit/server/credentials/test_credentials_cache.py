"""Credentials that are kept for a time."""

from bergline.server.credentials.credentials_cache import CredentialsCache
from bergline.server.credentials.vending import VendedCredentials


def test_credentials_are_kept_by_access_and_directories_until_their_time() -> None:
    now = [0]
    cache = CredentialsCache(lambda: now[0])
    vended = VendedCredentials((), "a")
    assert cache.keep((True, ("s3://b/t",)), vended, 10) is vended
    assert cache.find((True, ("s3://b/t",))) is vended
    assert cache.find((False, ("s3://b/t",))) is None
    assert cache.find((True, ("s3://b/t2",))) is None
    now[0] = 10
    assert cache.find((True, ("s3://b/t",))) is None


def test_the_oldest_go_first() -> None:
    cache = CredentialsCache(lambda: 0)
    for number in range(10_001):
        cache.keep((True, (str(number),)), VendedCredentials((), ""), 1)
    assert cache.find((True, ("0",))) is None
    assert cache.find((True, ("1",))) is not None
