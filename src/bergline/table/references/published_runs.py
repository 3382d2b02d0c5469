"""Which runs of pipelines were published to a branch, recorded in a table property, out of reach of expiry.

Each run is recorded with the snapshot that published it, so that a run that was rolled back can be published again.
"""

from typing import Final

import msgspec

from bergline.errors import FormatError
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata, positive_property
from bergline.format.metadata.updates import SetProperties

PUBLISHED_RUNS: Final = "bergline.pipeline.published-runs"
KEPT_RUNS: Final = "bergline.pipeline.published-runs-to-keep"
_DEFAULT_KEPT = 1000


class PublishedRun(msgspec.Struct, frozen=True):
    """A run of a pipeline."""

    pipeline: str
    run_id: str


class _PublishedAs(msgspec.Struct, frozen=True, array_like=True):
    snapshot_id: int
    sequence_number: int


_Runs = dict[str, dict[str, _PublishedAs]]
"""By pipeline and run id, the oldest first."""


def note_run(metadata: TableMetadata, run: PublishedRun, snapshot: Snapshot) -> SetProperties:
    """Record a run, and drop the oldest ones of its pipeline if there are too many."""
    runs = _kept_runs(metadata)
    own = {run_id: known for run_id, known in runs.get(run.pipeline, {}).items() if run_id != run.run_id}
    own[run.run_id] = _PublishedAs(snapshot.snapshot_id, snapshot.sequence_number)
    kept = max(1, positive_property(metadata, KEPT_RUNS, _DEFAULT_KEPT))
    runs[run.pipeline] = dict(list(own.items())[-kept:])
    return SetProperties({PUBLISHED_RUNS: msgspec.json.encode(runs).decode()})


def has_run(metadata: TableMetadata, branch: str, run: PublishedRun) -> bool:
    """Whether a branch has a recorded run; a run without a record may still be in its history."""
    known = _kept_runs(metadata).get(run.pipeline, {}).get(run.run_id)
    head = metadata.head(branch)
    if known is None or head is None:
        return False
    history = list(metadata.ancestors(head.snapshot_id))
    if any(snapshot.snapshot_id == known.snapshot_id for snapshot in history):
        return True
    # if history goes further back, the run was rolled back; else it has expired, or the table was replaced since
    published = metadata.snapshots_by_id.get(known.snapshot_id)
    if metadata.format_version == 1:  # v1 tables have no sequence numbers
        return published is None or all(s.timestamp_ms >= published.timestamp_ms for s in history)
    return all(s.sequence_number >= known.sequence_number for s in history)


def _kept_runs(metadata: TableMetadata) -> _Runs:
    text = metadata.properties.get(PUBLISHED_RUNS, "{}")
    try:
        return msgspec.json.decode(text, type=_Runs)
    except msgspec.MsgspecError as error:
        raise FormatError(
            f"expected the published runs of pipelines as JSON in property `{PUBLISHED_RUNS}`: {error}",
            hints=["without the property only runs whose snapshots have not expired are known"],
        ) from error
