"""The two kinds of Spark are told apart in one place, and Spark Connect's packages need not be installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.connect import functions as F  # noqa: N812

import bergline.spark
from bergline.errors import InvalidInputError
from bergline.spark.backends.choose import backend_class, session_backend
from bergline.spark.backends.classic.backend import ClassicBackend
from bergline.spark.backends.connect.backend import ConnectBackend

pytestmark = pytest.mark.long

SPARK = Path(bergline.spark.__file__).parent
OF_ONE_KIND = re.compile(
    r"pyspark\.sql\.(connect|classic)|over_connect|is_remote|py4j|\bsparkContext\b"
    r"|\._(sc|jvm|jsc|jdf|jc|jconf|jreader|jwrite|jsparkSession)\b"
)
KIND_CHECK = re.compile(r"isinstance\([^\n]*\b(SparkSession|Classic\w+|Connect\w+)\b|pyspark\.sql\.connect\.\"")


def sources(*without: str) -> dict[str, str]:
    found = {file.relative_to(SPARK).as_posix(): file.read_text() for file in SPARK.rglob("*.py")}
    return {name: text for name, text in found.items() if not name.startswith(without)}


def test_what_only_one_kind_has_is_used_in_its_backend_alone() -> None:
    lines = [f"{name}: {line}" for name, text in sources("backends/").items() for line in text.splitlines()]
    assert [line for line in lines if OF_ONE_KIND.search(line)] == []


def test_kinds_are_told_apart_in_one_place() -> None:
    assert [name for name, text in sources().items() if KIND_CHECK.search(text)] == ["backends/choose.py"]


def test_backends_import_nothing_of_each_other() -> None:
    for kind, other in (("classic", "connect"), ("connect", "classic")):
        own = [text for name, text in sources().items() if name.startswith(f"backends/{kind}/")]
        assert own
        assert not [text for text in own if f"backends.{other}" in text or f"pyspark.sql.{other}" in text]


def test_columns_have_the_backend_of_their_kind() -> None:
    assert backend_class(F.col("id")) is ConnectBackend
    assert backend_class(object()) is ClassicBackend


@pytest.mark.parametrize("thing", [None, "spark", SparkSession.builder, F.col("id")])
def test_what_is_no_session_has_no_backend(thing: object) -> None:
    with pytest.raises(InvalidInputError, match="expected a SparkSession, found "):
        session_backend(thing)


def test_packages_of_spark_connect_need_not_be_installed() -> None:
    program = (
        "import sys; sys.modules['grpc'] = None\n"
        "import bergline.spark.session.attach, bergline.spark.reads.scan, bergline.spark.pipeline.pipeline\n"
        "from bergline.spark.backends.choose import backend_class\n"
        "print(backend_class(object()).__name__, any(name.startswith('pyspark.sql.connect.') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ClassicBackend", "False"]
