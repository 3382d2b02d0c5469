"""Files with credentials that a server lends."""

import pickle
import time

import pytest

from bergline.catalog.rest.client.files import Vended, VendedFileIO
from bergline.catalog.rest.protocol.bodies import StorageCredential
from bergline.errors import AuthenticationError

TABLE = '{"namespace":["db"],"name":"orders"}'
FILE = "s3://bucket/db/orders/data/a.parquet"


def vended(expires_ms: int, key: str = "k") -> Vended:
    keys = {"s3.access-key-id": key, "s3.secret-access-key": "s", "s3.session-token-expires-at-ms": str(expires_ms)}
    return Vended(("s3://bucket/db/orders",), {}, (StorageCredential("s3://bucket/db/orders/", keys),))


def in_a_task(io: VendedFileIO) -> VendedFileIO:
    sent = pickle.loads(pickle.dumps(io))  # noqa: S301  (our own)
    assert isinstance(sent, VendedFileIO)
    return sent


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_tasks_use_what_they_were_sent_until_it_has_expired() -> None:
    io = VendedFileIO({}, clock_ms=now_ms, renew=lambda _: None)
    io.vend(TABLE, vended(now_ms() + 3_600_000))
    assert in_a_task(io).storage_for(FILE)
    io.vend(TABLE, vended(now_ms() - 1_000_000))
    with pytest.raises(AuthenticationError, match=r"table `db\.orders` expired at .*; a task has") as raised:
        in_a_task(io).storage_for(FILE)
    assert raised.value.hints
    assert in_a_task(io).storage_for("s3://bucket/elsewhere/b.parquet")


def test_credentials_are_renewed_before_they_expire_and_sent_to_tasks_renewed() -> None:
    now = [0]
    asked = []

    def renew(table: str) -> Vended:
        asked.append(table)
        return vended(now[0] + 3_600_000 + now_ms(), f"k{len(asked)}")

    io = VendedFileIO({}, clock_ms=lambda: now[0], renew=renew)
    io.vend(TABLE, vended(1_000_000))
    first = io.storage_for(FILE)
    assert io.storage_for(FILE) is first
    now[0] = 800_000
    second = io.storage_for(FILE)
    assert second is not first
    assert asked == [TABLE]
    assert in_a_task(io).storage_for(FILE)
