"""Lakes in Spark's configuration: what is read, and what is refused."""

from pathlib import Path

import pytest

from bergline.errors import InvalidInputError, NotFoundError
from bergline.spark.session.configured_lakes import (
    LakeSettings,
    close_lakes,
    connect_lakes,
    read_lakes,
)


def test_settings_are_those_of_connect() -> None:
    found = read_lakes(
        {
            "session": "an id",
            "prod.uri": "https://host",
            "prod.warehouse": "wh",
            "prod.property.token": "t",
            "prod.property.s3.endpoint": "http://host:9000",
            "prod.default": "TRUE",
            "dev.uri": "sqlite:///dev.db",
            "dev.name": "other",
            "dev.create": "true",
            "dev.busy-timeout": "2.5",
            "dev.ref": "staging",
            "dev.default": "false",
        }
    )
    assert found is not None
    assert found.default == "prod"
    assert found.lakes == {
        "prod": LakeSettings("https://host", "wh", properties=(("s3.endpoint", "http://host:9000"), ("token", "t"))),
        "dev": LakeSettings("sqlite:///dev.db", name="other", create=True, busy_timeout=2.5, ref="staging"),
    }
    assert "host" not in repr(found.lakes["prod"])
    assert read_lakes({"session": "an id"}) is None
    alone = read_lakes({"session.uri": "sqlite:///a.db"})
    assert alone is not None
    assert alone.default == "session"


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        (
            {"uri": "x"},
            "expected the name of a lake and its setting, as `spark.bergline.lake.uri`",
            "`spark.bergline.lake.uri`",
        ),
        ({".uri": "x"}, "found `spark.bergline..uri`", "`spark.bergline.lake.uri`"),
        ({"a.url": "x"}, "found `spark.bergline.a.url`", "did you mean `spark.bergline.a.uri`?"),
        ({"a.uri": "x", "a.s3.endpoint": "y"}, "found `spark.bergline.a.s3.endpoint`", "`spark.bergline.a.property.`"),
        ({"a.uri": "x", "a.property.": "y"}, "found `spark.bergline.a.property.`", "go under"),
        ({"a.uri": ""}, "expected a value for `spark.bergline.a.uri`, found empty text", None),
        ({"a.warehouse": "x"}, "expected `spark.bergline.a.uri`, found only `spark.bergline.a.warehouse`", None),
        ({"a.uri": "x", "a.create": "yes"}, "expected true or false for `spark.bergline.a.create`, found `yes`", None),
        (
            {"a.uri": "x", "a.busy-timeout": "5s"},
            "expected a number of seconds for `spark.bergline.a.busy-timeout`",
            None,
        ),
        (
            {"a.uri": "x", "b.uri": "y"},
            "expected one default lake, found none of `a`, `b`",
            "`spark.bergline.a.default`",
        ),
        (
            {"a.uri": "x", "b.uri": "y", "a.default": "true", "b.default": "true"},
            "expected one default lake, found several of `a`, `b`",
            "`spark.bergline.a.default`",
        ),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, str], message: str, hint: str | None) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_lakes(settings)
    assert message in str(caught.value)
    assert hint is None or any(hint in h for h in caught.value.hints)


def test_lakes_are_connected_all_or_none_and_shared_until_nobody_has_them(tmp_path: Path) -> None:
    good = LakeSettings(f"sqlite:///{tmp_path}/a.db", create=True)
    missing = LakeSettings(f"sqlite:///{tmp_path}/b.db")
    with pytest.raises(NotFoundError, match="no such file") as caught:
        connect_lakes({"a": good, "b": missing})
    assert caught.value.hints[0] == "`spark.bergline.b.create` = `true` creates it"
    assert "lake `b` is configured by `spark.bergline.b.*`" in caught.value.__notes__
    first = connect_lakes({"a": good})["a"]
    assert connect_lakes({"again": good, "same": good}) == {"again": first, "same": first}
    close_lakes([first], still_used=[first])
    assert not first.is_closed
    close_lakes([first], still_used=[])
    assert first.is_closed
    again = connect_lakes({"a": good})["a"]
    assert not again.is_closed
    close_lakes([again], still_used=[])
