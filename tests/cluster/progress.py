"""Shows what takes long: a spinner with the elapsed time on a terminal, plain lines elsewhere.

Everything goes to standard error, so that a command's standard output stays its result.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Step:
    """One running step; `detail` shows where it is (on a terminal only: a log wants no flood)."""

    def __init__(self, progress: Progress | None, task: TaskID | None) -> None:
        self._progress, self._task = progress, task

    def detail(self, text: str) -> None:
        """Show a short text behind the step's title until the next one."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, detail=escape(text[-60:]))


class Steps:
    """A run's long steps; they may nest and may run in several threads."""

    def __init__(self, stream: TextIO | None = None, *, terminal: bool | None = None) -> None:
        self._console = Console(file=stream or sys.stderr, force_terminal=terminal, highlight=False)
        self._progress: Progress | None = None
        self._running = 0
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show `title` while the block runs, then how long it took; a failure is marked and passes through."""
        if not self._console.is_terminal:
            self.note(f"{title} ...")
        begin = time.monotonic()
        progress = self._enter()
        task = progress.add_task(escape(title), total=None, detail="") if progress else None
        outcome = "failed after"
        try:
            yield Step(progress, task)
            outcome = "done in"
        finally:
            if progress and task is not None:
                progress.remove_task(task)
            self._leave()
            self.note(f"{title}: {outcome} {time.monotonic() - begin:.0f} s")

    def note(self, text: str) -> None:
        """Print one line, above the running steps on a terminal."""
        self._console.print(text, markup=False, soft_wrap=True)

    def _enter(self) -> Progress | None:
        with self._guard:
            self._running += 1
            if self._progress is None and self._console.is_terminal:
                columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
                self._progress = Progress(
                    *columns, TextColumn("[dim]{task.fields[detail]}"), console=self._console, transient=True
                )
                self._progress.start()
            return self._progress

    def _leave(self) -> None:
        with self._guard:
            self._running -= 1
            if self._running == 0 and self._progress is not None:
                self._progress.stop()
                self._progress = None
