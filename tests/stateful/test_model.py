"""Branches, tags, writes and expiry against a plain dictionary: every ref's rows equal the model's, always."""

import datetime as dt
import tempfile

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from rows import ORDERS, ids, order_rows

import bergline
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, RefusedError
from bergline.scan.manifests import load_entries, load_manifest_list

NAMES = st.sampled_from(["main", "dev", "audit", "v1", "v2"])


class LakeMachine(RuleBasedStateMachine):
    """The model: each ref's kind and rows, and each branch's history of rows by snapshot."""

    @initialize()
    def open(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.lake = bergline.connect(f"sqlite:///{self._directory.name}/catalog.db")
        self.lake.create_namespace("db")
        self.table = self.lake.create_table("db.orders", ORDERS)
        self.refs: dict[str, tuple[str, frozenset[int]]] = {}
        self.rows_by_snapshot: dict[int, frozenset[int]] = {}
        self.next_id = 0

    def teardown(self) -> None:
        self.lake.close()
        self._directory.cleanup()

    def _kind(self, name: str) -> str | None:
        return self.refs[name][0] if name in self.refs else None

    def _remember(self, branch: str, rows: frozenset[int]) -> None:
        self.refs[branch] = ("branch", rows)
        self.rows_by_snapshot[self.table.refs[branch].snapshot_id] = rows

    @rule(branch=NAMES, overwrite=st.booleans(), count=st.integers(0, 2))
    def write(self, branch: str, overwrite: bool, count: int) -> None:
        new = list(range(self.next_id, self.next_id + count))
        self.next_id += count
        write = self.table.overwrite if overwrite else self.table.append
        if self._kind(branch) == "tag":
            with pytest.raises(RefusedError):
                write(order_rows(*new), branch=branch)
            return
        write(order_rows(*new), branch=branch)
        start = self.refs.get(branch) or self.refs.get("main") or ("", frozenset())
        self._remember(branch, frozenset(new) if overwrite else start[1] | set(new))

    @rule(name=NAMES, at=NAMES, tag=st.booleans())
    def create_ref(self, name: str, at: str, tag: bool) -> None:
        create = self.table.refs.create_tag if tag else self.table.refs.create_branch
        if at not in self.refs:
            with pytest.raises(NotFoundError):
                create(name, at=at)
        elif name in self.refs:
            with pytest.raises(AlreadyExistsError):
                create(name, at=at)
        elif name == "main" and tag:
            with pytest.raises(InvalidInputError):
                create(name, at=at)
        else:
            create(name, at=at)
            self.refs[name] = ("tag" if tag else "branch", self.refs[at][1])

    @rule(name=NAMES, tag=st.booleans())
    def drop_ref(self, name: str, tag: bool) -> None:
        drop = self.table.refs.drop_tag if tag else self.table.refs.drop_branch
        if name == "main" and not tag:
            with pytest.raises(RefusedError):
                drop(name)
        elif name not in self.refs:
            with pytest.raises(NotFoundError):
                drop(name)
        elif (self._kind(name) == "tag") != tag:
            with pytest.raises(InvalidInputError):
                drop(name)
        else:
            drop(name)
            del self.refs[name]

    @rule(branch=NAMES, to=NAMES)
    def fast_forward(self, branch: str, to: str) -> None:
        metadata = self.table.metadata
        if to not in self.refs:
            with pytest.raises(NotFoundError):
                self.table.refs.fast_forward(branch, to=to)
        elif self._kind(branch) == "tag":
            with pytest.raises(InvalidInputError):
                self.table.refs.fast_forward(branch, to=to)
        elif branch in self.refs and not _descends(
            metadata, metadata.refs[to].snapshot_id, metadata.refs[branch].snapshot_id
        ):
            with pytest.raises(RefusedError):
                self.table.refs.fast_forward(branch, to=to)
        else:
            self.table.refs.fast_forward(branch, to=to)
            self.refs[branch] = ("branch", self.refs[to][1])

    @precondition(lambda self: self.refs)
    @rule(retain_last=st.integers(1, 3))
    def expire(self, retain_last: int) -> None:
        heads = {ref.snapshot_id for ref in self.table.metadata.refs.values()}
        self.table.expire(older_than=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), retain_last=retain_last)
        assert heads <= set(self.table.metadata.snapshots_by_id)

    @invariant()
    def every_ref_reads_as_the_model_says(self) -> None:
        seen = self.lake.load_table("db.orders")
        assert set(seen.refs) == set(self.refs)
        for name, (kind, rows) in self.refs.items():
            assert seen.refs[name].snapshot_ref_type == kind
            assert ids(seen.scan(ref=name).to_arrow()) == sorted(rows)

    @invariant()
    def every_snapshot_left_is_readable_with_its_own_rows(self) -> None:
        for snapshot_id, rows in self.rows_by_snapshot.items():
            if snapshot_id in self.table.metadata.snapshots_by_id:
                assert ids(self.table.scan(snapshot_id=snapshot_id).to_arrow()) == sorted(rows)

    @invariant()
    def a_manifest_has_one_number_and_a_file_keeps_its_own(self) -> None:
        manifests: dict[str, int | None] = {}
        files: dict[str, int | None] = {}
        for snapshot in self.table.metadata.snapshots:
            for manifest in load_manifest_list(self.table.io, snapshot):
                assert (
                    manifests.setdefault(manifest.manifest_path, manifest.sequence_number) == manifest.sequence_number
                )
                for entry in load_entries(self.table.io, manifest, self.table.metadata):
                    path, number = entry.data_file.file_path, entry.sequence_number
                    assert files.setdefault(path, number) == number


def _descends(metadata: object, snapshot_id: int | None, ancestor: int) -> bool:
    known = {s.snapshot_id: s.parent_snapshot_id for s in metadata.snapshots}  # type: ignore[attr-defined]
    while snapshot_id in known:
        if snapshot_id == ancestor:
            return True
        snapshot_id = known[snapshot_id]
    return False


TestLakeMachine = LakeMachine.TestCase
TestLakeMachine.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
