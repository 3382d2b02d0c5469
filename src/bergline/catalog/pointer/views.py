"""Views of a pointer catalog."""

from typing import TYPE_CHECKING, Any

from bergline.catalog.catalog import DroppedView, LoadedView, ViewChange
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.metadata_files import view_files
from bergline.catalog.pointer.named_pointers import NamedPointers, check_namespace, create_with_file, newest_dropped
from bergline.catalog.pointer.namespaces import PointerNamespaces
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, DroppedPointers, PointerSwap
from bergline.catalog.pointer.settle import Verdict, check_refused, send_swaps, settle_swaps
from bergline.errors import CommitUnknownError, ConflictError
from bergline.format.view.updates import check_view_requirements
from bergline.format.view.view_metadata import ViewMetadata
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.format.view import apply
else:  # reading does not need it
    apply = LazyModule("bergline.format.view.apply")


class PointerViews(PointerNamespaces):
    """Views over a PointerStore that has them; UnsupportedError over any other."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._view_files = view_files(self.io, self.max_metadata_bytes, self._kept_digests)

    def load_view(self, name: TableName) -> LoadedView:
        pointer = self._named("view").find(name)
        return LoadedView(name, self._view_files.load_for(f"view `{name}`", pointer), pointer)

    def view_pointer(self, name: TableName) -> str:
        """The pointer in the store."""
        return self._named("view").find(name)

    def view_at(self, location: str) -> ViewMetadata:
        """Load a view from a metadata file."""
        return self._view_files.load(location)

    def create_view(self, name: TableName, metadata: ViewMetadata) -> LoadedView:
        """Write the first metadata file, then create the pointer."""
        names = self._named("view", metadata.properties)
        check_namespace(self.store, name.namespace)
        names.check_free(name)
        location = self._view_files.write(metadata, None)
        found = create_with_file(
            names,
            name,
            location,
            lambda pointer: self._view_files.load(pointer).view_uuid == metadata.view_uuid,
            self._view_files,
        )
        return LoadedView(name, metadata if found == location else self._view_files.load(found), found)

    def register_view(self, name: TableName, metadata_location: str) -> LoadedView:
        """Read the metadata file, then create the pointer to it."""
        names = self._named("view")
        check_namespace(self.store, name.namespace)
        metadata = self._view_files.load(metadata_location)
        names.check_free(name)  # so that the pointer leads to what was registered
        created = names.create(
            name, metadata_location, is_ours=metadata_location.__eq__, is_written=self._view_files.is_written
        )
        names.check_created(name, created)
        return LoadedView(name, metadata, metadata_location)

    def commit_view(self, change: ViewChange) -> LoadedView:
        """Apply, write, swap; after a lost response the pointer decides, unless others moved it since."""
        base, names = change.base, self._named("view", change.base.metadata.properties)
        if names.pointers.read(base.name) != base.metadata_location:
            raise _moved_on(base)
        check_view_requirements(base.metadata, change.requirements, str(base.name))
        metadata = apply.apply_view_updates(base.metadata, change.updates, now_ms=self._clock_ms())
        location = self._view_files.write(metadata, base.metadata_location)
        match self._swap_view(names, PointerSwap(base.name, base.metadata_location, location), metadata):
            case Verdict.LANDED | Verdict.PRESENT:
                return LoadedView(base.name, metadata, location)
            case Verdict.LOST:
                self._view_files.discard(location)
                raise _moved_on(base)
            case Verdict.UNKNOWN:
                raise CommitUnknownError(
                    f"cannot find out whether the change of view `{base.name}` happened",
                    table=str(base.name),
                    metadata_location=location,
                )

    def rename_view(self, name: TableName, new: TableName) -> None:
        names = self._named("view")
        check_namespace(self.store, new.namespace)
        names.rename(name, new)

    def drop_view(self, name: TableName) -> None:
        self._named("view").drop(name)

    def dropped_views(self, most: int | None = None) -> list[DroppedView]:
        return self.store.dropped_views(most) if isinstance(self.store, DroppedPointers) else []

    def undrop_view(self, name: TableName, to: TableName | None = None) -> LoadedView:
        """Read the metadata file, then take the pointer out of the trash."""
        dropped = newest_dropped("view", self.dropped_views(), name)
        new = to or name
        check_namespace(self.store, new.namespace)
        metadata = self._view_files.load(dropped.metadata_location)
        names = self._named("view", metadata.properties)
        names.check_free(new)
        assert isinstance(self.store, DroppedPointers)  # noqa: S101  (or it had none)
        try:
            restored = self.store.restore_view(dropped, new)
        except (*NOTHING_CHANGED, ConflictError):
            raise
        except Exception as error:
            raise CommitUnknownError(
                f"cannot find out whether view `{name}` came back as `{new}`: {error}",
                table=str(new),
                metadata_location=dropped.metadata_location,
            ) from error
        names.check_created(new, dropped.metadata_location if restored else None)
        return LoadedView(new, metadata, dropped.metadata_location)

    def list_views(self, namespace: Namespace) -> list[TableName]:
        """Views in a namespace; none in a catalog that has no views."""
        check_namespace(self.store, namespace)
        return self.store.views.list_names(namespace) if self.store.views else []

    def _swap_view(self, names: NamedPointers, swap: PointerSwap, metadata: ViewMetadata) -> Verdict:
        waits = self._status_check_waits(metadata.properties)
        try:
            if send_swaps(names.pointers, (swap,)):
                return Verdict.LANDED
            # views have no files but their metadata, which nothing names once the pointer has moved
            return check_refused(names.pointers, (swap,), history=lambda *_: Verdict.LOST, waits=waits)
        except NOTHING_CHANGED:
            self._view_files.discard(swap.new)
            raise
        except Exception:  # noqa: BLE001  (any doubt is settled here)
            return settle_swaps(names.pointers, (swap,), history=_without_log, waits=waits)


def _without_log(_swap: PointerSwap, _pointer: str) -> Verdict:
    """View metadata has no metadata log: the outcome cannot be derived from it."""
    return Verdict.UNKNOWN


def _moved_on(base: LoadedView) -> ConflictError:
    return ConflictError(f"view `{base.name}` moved on: it is no longer at {base.metadata_location}")
