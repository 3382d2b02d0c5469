"""What the seed texts show, as it stands there."""

REFS_EXAMPLE = """
{
  "current-snapshot-id": 8027658604211071520,
  "refs": {
    "main": {
      "snapshot-id": 8027658604211071520,
      "type": "branch",
      "min-snapshots-to-keep": 10,
      "max-snapshot-age-ms": 604800000
    },
    "staging": {
      "snapshot-id": 7935847293847561234,
      "type": "branch",
      "min-snapshots-to-keep": 3,
      "max-snapshot-age-ms": 86400000
    },
    "v2.0-release": {
      "snapshot-id": 6891234567890123456,
      "type": "tag",
      "max-ref-age-ms": 31536000000
    }
  }
}
"""
"""The `refs` of a table's metadata, from the text on snapshot references."""
