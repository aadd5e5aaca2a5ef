"""A child process that processes its share of a run's sessions, and the messages between it and its parent process.

It is started as `python -m afterword.client.process_worker`. It reads one `SessionShare` from standard input. To
standard output it writes an `Ended` for every session, and one `Finished`. What follows on standard input is the reason
to stop: at its end no further session is begun. So it also ends when the process that began it has died.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import BinaryIO

from afterword.client.resources import Resources
from afterword.errors import AfterwordError
from afterword.pipeline.batch import Failure, NotStarted, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.settings import Settings
from afterword.store.costs import Spending
from afterword.store.ledger import session_source

LENGTH_BYTES = 8
"""How many bytes stand before each message and give its length, the highest byte first."""
BACKGROUND_NICENESS = 10
"""How far the priority of background work is lowered, so that a live agent on a busy machine comes first."""


@dataclass(frozen=True, slots=True)
class SessionShare:
    """The sessions of one process, and how they are processed. `is_background` lowers its priority."""

    settings: Settings
    extractor: str | None
    apply: bool
    concurrency: int
    sessions_at_once: int | None
    is_background: bool
    sessions: tuple[Saved, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of one session, and what it cost."""

    result: SessionOutcome | Failure | NotStarted
    spent: Spending


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a share. `error` says what kept the process from beginning, `budget_reached` which budget ended it."""

    budget_reached: str | None = None
    error: str | None = None


def packed(message: SessionShare | Ended | Finished) -> bytes:
    """Return a message as it is sent: its length and its content."""
    content = pickle.dumps(message)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def unpacked(content: bytes) -> SessionShare | Ended | Finished:
    """Return the message of a content. Only for bytes of a process of our own: pickle runs what it reads."""
    message: SessionShare | Ended | Finished = pickle.loads(content)
    return message


class StopReason:
    """Reads the reason to stop in a thread. Called, it returns the reason, None before that."""

    def __init__(self, source: FileIO) -> None:
        self._reason: str | None = None
        threading.Thread(target=self._read, args=(source,), daemon=True).start()

    def __call__(self) -> str | None:
        """Return the reason to stop."""
        return self._reason

    def _read(self, source: FileIO) -> None:
        self._reason = source.readall().decode() or "the process that began it has ended"


async def process_share(job: SessionShare, stop: Callable[[], str | None], output: BinaryIO) -> None:
    """Process the sessions of a job and write what becomes of each to `output`."""

    def send(message: Ended | Finished) -> None:
        # If the process that began this one has died, nobody reads. What has begun is finished and stored all the same.
        with suppress(BrokenPipeError):
            output.write(packed(message))
            output.flush()

    resources = Resources(job.settings, create=False)
    try:
        tracker = resources.tracker(job.extractor)

        def send_end(result: SessionOutcome | Failure | NotStarted) -> None:
            send(Ended(result, tracker.spent_on(result.scope, session_source(result.session_id))))

        async with resources.extractor_and_judge(job.extractor) as workers:
            results = await run_batch(
                await resources.store(),
                job.sessions,
                extractor=workers.extractor,
                judge=workers.judge,
                apply=job.apply,
                budget=tracker,
                stop=stop,
                on_done=send_end,
                retries=job.settings.retry.policy(),
                concurrency=job.concurrency,
                sessions_at_once=job.sessions_at_once,
                is_brief=True,
            )
        for result in results:
            if isinstance(result, NotStarted):
                send_end(result)
        send(Finished(tracker.reached))
    except AfterwordError as error:
        send(Finished(error=str(error)))
    finally:
        await resources.close()


def _read_exactly(source: FileIO, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        part = source.read(length - len(content))
        if not part:
            raise EOFError(f"standard input ended after {len(content)} of {length} bytes of the job")
        content += part
    return bytes(content)


def _main() -> None:
    """Run the job that standard input holds. What libraries print goes to standard error."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Unbuffered: a thread that waits for a buffered file keeps its lock, and the interpreter cannot end.
    source = FileIO(sys.stdin.fileno(), closefd=False)
    job = unpacked(_read_exactly(source, int.from_bytes(_read_exactly(source, LENGTH_BYTES), "big")))
    if not isinstance(job, SessionShare):
        raise TypeError(f"expected a job, got {type(job).__name__}")
    if job.is_background and hasattr(os, "nice"):
        os.nice(BACKGROUND_NICENESS)
    try:
        asyncio.run(process_share(job, StopReason(source), output))
    finally:
        with suppress(BrokenPipeError):
            output.close()


if __name__ == "__main__":
    # The classes of the messages belong to the module that was imported, not to the program that is run.
    from afterword.client import process_worker

    process_worker._main()
