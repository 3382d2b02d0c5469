"""Views of a pointer catalog."""

from typing import TYPE_CHECKING

from bergline.catalog.catalog import Committed, Conflicted, DroppedView, LoadedView, Outcome, Unknown, ViewChange
from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_files import MetadataFiles
from bergline.catalog.pointer.named_pointers import NamedPointers, newest_dropped
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, PointerSwap
from bergline.catalog.pointer.relations import PointerRelations
from bergline.catalog.pointer.settle import SentSwaps, check_refused, lost, send_swaps, settle_swaps
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.errors import CommitUnknownError, ConflictError
from bergline.format.view.updates import check_view_requirements
from bergline.format.view.view_metadata import ViewMetadata
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.format.view import apply
else:  # reading does not need it
    apply = LazyModule("bergline.format.view.apply")


class PointerViews(PointerRelations[ViewMetadata, LoadedView]):
    """Views over a PointerStore that has them; UnsupportedError over any other."""

    def __init__(self, access: StoreAccess, files: MetadataFiles[ViewMetadata]) -> None:
        super().__init__(access, "view", files, LoadedView)

    def commit(self, change: ViewChange) -> LoadedView:
        """Apply, write, swap; after a lost response the pointer decides, unless others moved it since."""
        base, names = change.base, self._names(change.base.metadata)
        if names.pointers.read(base.name) != base.metadata_location:
            raise _moved_on(base)
        check_view_requirements(base.metadata, change.requirements, str(base.name))
        metadata = apply.apply_view_updates(base.metadata, change.updates, now_ms=self._access.clock_ms())
        location = self.files.write(metadata, base.metadata_location)
        match self._swap(names, PointerSwap(base.name, base.metadata_location, location), metadata):
            case Committed():
                return LoadedView(base.name, metadata, location)
            case Conflicted():
                self.files.discard(location)
                raise _moved_on(base)
            case Unknown():
                raise CommitUnknownError(
                    f"cannot find out whether the change of view `{base.name}` happened",
                    table=str(base.name),
                    metadata_location=location,
                )

    def dropped(self, most: int | None = None) -> list[DroppedView]:
        """The views in the trash; none where there is none."""
        return self._trash.dropped_views(most) if self._trash else []

    def undrop(self, name: TableName, to: TableName | None = None) -> LoadedView:
        """Take the view that was dropped last under a name out of the trash."""
        dropped, new = newest_dropped("view", self.dropped(), name), to or name
        return self._restored(name, new, dropped.metadata_location, lambda trash: trash.restore_view(dropped, new))

    def _swap(self, names: NamedPointers, swap: PointerSwap, metadata: ViewMetadata) -> Outcome:
        waits = self._access.waits(metadata.properties)
        # views have no files but their metadata, which nothing names once the pointer has moved
        sent = SentSwaps((swap,), Committed(()), lambda *_: lost(swap))
        try:
            return sent.made if send_swaps(names.pointers, (swap,)) else check_refused(names.pointers, sent, waits)
        except NOTHING_CHANGED:
            self.files.discard(swap.new)
            raise
        except Exception as error:  # noqa: BLE001  (any doubt is settled here)
            # view metadata has no metadata log: a pointer that others have moved since does not tell
            return settle_swaps(names.pointers, SentSwaps((swap,), sent.made), waits, str(error))


def _moved_on(base: LoadedView) -> ConflictError:
    return ConflictError(f"view `{base.name}` moved on: it is no longer at {base.metadata_location}")
