"""Progress on a terminal: how much is done, how fast, and how long it will still take."""

import contextlib
import sys
from collections.abc import Callable, Iterator

ShowProgress = Callable[[str, int, int], None]
"""Takes what is being done, how much of it is done, and how much there is."""


@contextlib.contextmanager
def progress_line(*, in_bytes: bool = False) -> Iterator[ShowProgress | None]:
    """A line on stderr while the block runs, removed at its end; None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  (only where it is shown)
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.text import Text  # noqa: PLC0415

    class Rate(ProgressColumn):
        """How many per second."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f}/s", style="progress.data.speed")

    amounts = (DownloadColumn(binary_units=True), TransferSpeedColumn()) if in_bytes else (MofNCompleteColumn(), Rate())
    line = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *amounts,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with line:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                for known in list(tasks):
                    line.remove_task(tasks.pop(known))
                tasks[what] = line.add_task(what, total=total)
            line.update(tasks[what], completed=done, total=total)

        yield show
