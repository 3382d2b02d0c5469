"""What Spark's pages know about stages that have run: how often, and what became of their tasks."""

import time
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext

_SHOWN_S: Final = 1.0
"""After a job has ended, its pages show that within milliseconds, unless the driver is very busy."""
_ENDED_S: Final = 3.0
"""Tasks that Spark kills end at once, or 2 s later if Python does not answer (`spark.python.task.killTimeout`)."""
_PAUSE_S: Final = 0.02
_ENDED: Final = ("COMPLETE", "FAILED")


def ran_once(context: SparkContext, stage_id: int) -> bool:
    """Whether it is certain that a stage, which has succeeded, ran once, and each of its tasks.

    The starts of all attempts of tasks are counted before the end of the last task that was needed. So if as many tasks
    are complete as there are, all of the first attempt of the stage, and none failed, was killed or is running, there
    were no others. (The stage would have been run again only after a task of it had failed.)
    """
    store: Any = context._jsc.sc().statusStore()  # noqa: SLF001  (public words leave out killed tasks)
    started = time.monotonic()
    try:
        while True:
            stage, waited = store.lastStageAttempt(stage_id), time.monotonic() - started
            has_ended, running = str(stage.status().toString()) in _ENDED, stage.numActiveTasks()
            if has_ended and not running:
                others = stage.attemptId() + stage.numFailedTasks() + stage.numKilledTasks()
                return not others and bool(stage.numCompleteTasks() == stage.numTasks())
            if waited > (_ENDED_S if has_ended else _SHOWN_S):
                return False
            time.sleep(_PAUSE_S)
    except Py4JError:  # Spark keeps only so many stages (`spark.ui.retainedStages`)
        return False
