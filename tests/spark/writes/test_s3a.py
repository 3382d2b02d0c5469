"""Spark's S3A connector writes only where it is the same user of the same store as the lake's storage."""

from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from bergline.io.memory import MemoryFileIO
from bergline.io.schemes import SchemeFileIO
from bergline.spark.backends.choose import backend_of
from bergline.spark.backends.classic.files import NO_CONNECTOR
from bergline.spark.writes.s3a import other_writer, s3a_write_refusal

pytestmark = pytest.mark.spark

LOCATION = "s3://bucket/wh/data"
OURS = {"s3.endpoint": "http://host:9000", "s3.access-key-id": "key", "s3.secret-access-key": "secret"}
THEIRS = {"endpoint": "http://HOST:9000/", "access.key": "key", "secret.key": "secret"}
AMAZON = {name: text for name, text in OURS.items() if name != "s3.endpoint"}
TOKEN = {"s3.session-token": "token"}
HADOOP = "org.apache.hadoop.fs.s3a."


@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        (OURS, THEIRS, None),
        (OURS, {**THEIRS, "endpoint": "host:9000", "connection.ssl.enabled": "false"}, None),
        (OURS, {**THEIRS, "access.key": "other", "bucket.bucket.access.key": "key"}, None),
        (OURS, {**THEIRS, "aws.credentials.provider": f"{HADOOP}SimpleAWSCredentialsProvider"}, None),
        ({**OURS, **TOKEN}, {**THEIRS, "session.token": "token"}, None),
        (AMAZON, {**THEIRS, "endpoint": "s3.eu-central-1.amazonaws.com"}, None),
        (AMAZON, THEIRS, "endpoint"),
        (OURS, {**THEIRS, "endpoint": "host:9000"}, "endpoint"),
        (OURS, {**THEIRS, "bucket.bucket.endpoint": "http://host:9001"}, "endpoint"),
        (OURS, {**THEIRS, "access.key": "other"}, "other keys"),
        (OURS, {**THEIRS, "bucket.bucket.secret.key": "other"}, "other keys"),
        (OURS, {**THEIRS, "session.token": "token"}, "other keys"),
        ({**OURS, **TOKEN}, THEIRS, "other keys"),
        (OURS, {**THEIRS, "aws.credentials.provider": f"{HADOOP}AnonymousAWSCredentialsProvider"}, "other keys"),
        (OURS, {"endpoint": OURS["s3.endpoint"]}, "other keys"),
        ({"s3.endpoint": OURS["s3.endpoint"]}, {"endpoint": OURS["s3.endpoint"]}, "was given no keys"),
        (OURS, {**THEIRS, "encryption.algorithm": "SSE-KMS"}, "encrypt"),
        ({**OURS, "s3.sse.type": "kms"}, THEIRS, "encrypt"),
        (OURS, {**THEIRS, "security.credential.provider.path": "jceks://file/keys"}, "ask elsewhere for keys"),
        (OURS, {**THEIRS, "impl": "org.example.Files"}, "not Hadoop's"),
    ],
)
@pytest.mark.kinds(20)
def test_who_writes_where_is_the_same_or_our_tasks_write(
    spark_session: SparkSession, ours: Mapping[str, str], theirs: Mapping[str, str], reason: str | None
) -> None:
    for name, text in theirs.items():
        spark_session.conf.set(f"fs.s3a.{name}", text)
    try:
        found = other_writer(backend_of(spark_session), SchemeFileIO(properties=ours), LOCATION)
    finally:
        for name in theirs:
            spark_session.conf.unset(f"fs.s3a.{name}")
    assert (found is None) if reason is None else (reason in str(found))


def test_storage_that_is_not_ours_and_session_without_connector_are_refused(spark_session: SparkSession) -> None:
    backend = backend_of(spark_session)
    assert "no keys" in str(other_writer(backend, SchemeFileIO({"s3": MemoryFileIO()}), LOCATION))
    assert s3a_write_refusal(backend, SchemeFileIO(properties=OURS), LOCATION) == NO_CONNECTOR
