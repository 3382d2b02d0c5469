"""Points in time as SQL writes them."""

from bergline.sql.text.timestamps import timestamp_ms


def test_times_without_a_zone_are_in_the_sessions() -> None:
    assert timestamp_ms("1970-01-01 01:00:00", "Europe/Berlin") == 0
    assert timestamp_ms("1970-01-01 01:00:00+00:00", "Europe/Berlin") == 3_600_000
    assert timestamp_ms(5, "UTC") == 5000
