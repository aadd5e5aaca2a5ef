"""What the processes do that tests start with `nursery.Child`. Each function takes the arguments of its process."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlmodel import Session, text

import servers
from afterword import FactMemory
from afterword.cli import main as cli_main
from afterword.extractors.extractor import Extraction, Window
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.scopes import Scope
from afterword.pipeline.background import workers
from afterword.pipeline.background.due_times import JobClock, Rhythm
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import Job
from afterword.pipeline.background.periodic_jobs import PeriodicJobs
from afterword.pipeline.background.schedule import Schedule
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.budget import Budget, CostTracker
from afterword.pipeline.sources.folders import find_sessions
from afterword.store import sessions
from afterword.store.database.engine import Store, open_store
from afterword.store.database.private_files import open_private_file
from afterword.store.limits import RetryPolicy
from afterword.store.transfer import export_lines, imports

Arguments = Sequence[str]
CHANGES = ("CREATE", "ALTER", "INSERT", "UPDATE", "DROP")


def run_command(arguments: Arguments) -> None:
    """Run `afterword` with these arguments."""
    sys.argv = ["afterword", *arguments]
    cli_main()


def run_text(arguments: Arguments) -> None:
    """Run the program whose text is the first argument. A warning is an error."""
    warnings.simplefilter("error")
    exec(compile(arguments[0], "program", "exec"), {"__name__": "__main__"})


def run_backwards(arguments: Arguments) -> None:
    """Process the folder of the first argument from its last session to its first; the command line sorts by time."""

    async def run() -> bool:
        async with await open_store() as store:
            newest_first = find_sessions([Path(arguments[0])])[::-1]
            outcomes = await run_batch(store, newest_first, extractor=RulesExtractor())
            return any(isinstance(outcome, Failure) for outcome in outcomes)

    sys.exit(asyncio.run(run()))


def write_for_ever(arguments: Arguments) -> None:
    """Begin a large transaction, print "writing", and never commit. Files are made with the widest umask."""
    os.umask(0)

    def write(transaction: Session) -> None:
        # With so small a cache, SQLite writes pages of the open transaction into the file beside the store.
        transaction.connection().execute(text("PRAGMA cache_size=2"))
        for number in range(300):
            state = {"number": number, "said": [str(place * number) for place in range(500)]}
            at = datetime.now(UTC)
            sessions.save_state(transaction, Scope.user("mira"), f"s{number}", component="x", state=state, at=at)
            transaction.flush()
        print_line("writing")
        time.sleep(600)

    async def run() -> None:
        async with await open_store() as store:
            await store.write(write)

    asyncio.run(run())


def write_private_for_ever(arguments: Arguments) -> None:
    """Begin to write words to a private file, print "writing", and never end."""
    path, words = arguments
    with open_private_file(Path(path)) as file:
        file.write(words)
        file.flush()
        print_line("writing")
        time.sleep(600)


def watch_for_ever(arguments: Arguments) -> None:
    """Watch over the server of a folder, print "watching", and never end."""
    with servers.watched(Path(arguments[0])):
        print_line("watching")
        time.sleep(600)


def print_line(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def migrate(arguments: Arguments) -> None:
    """Bring the tables of the store at an address up to date, and print the versions before and after."""

    async def run() -> tuple[str | None, str]:
        async with Store(arguments[0]) as store:
            return await store.migrate()

    print_line(str(asyncio.run(run())))


def die_in_migration(arguments: Arguments) -> None:
    """Migrate a store, and die after so many statements that change it."""
    url, statements = arguments
    die_after(int(statements), "after_cursor_execute", is_counted=lambda sql: sql.lstrip().upper().startswith(CHANGES))
    migrate([url])


def die_in_import(arguments: Arguments) -> None:
    """Import a file into a store, so many lines at once, and die before the statement of this number."""
    url, file, statements, lines_at_once = arguments
    export_lines.LINES_AT_ONCE = int(lines_at_once)
    die_after(int(statements), "before_cursor_execute", is_counted=lambda _: True)
    asyncio.run(imports.import_file(Store(url), Path(file)))


def die_after(statements: int, moment: str, *, is_counted: Callable[[str], bool]) -> None:
    """Let the process kill itself at its statement of this number."""
    left = statements

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal left
        left -= is_counted(statement)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, moment, count)


def recall_for_ever(arguments: Arguments) -> None:
    """Print what a live memory recalls whenever the file of the second argument has grown by a line."""

    async def run(url: str, asked: Path) -> None:
        memory = FactMemory(user="lena", store=url, timeout_s=60)
        answered = 0
        while True:
            while len(asked.read_text().splitlines()) > answered:  # noqa: ASYNC240 - nothing else runs
                print_line(str([fact.value for fact in (await memory.recall()).facts]))
                answered += 1
            await asyncio.sleep(0.02)

    asyncio.run(run(arguments[0], Path(arguments[1])))


class Notes:
    """A file in which several processes note who did what, and when."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def add(self, who: str, event_name: str) -> None:
        """Write a line at once."""
        os.write(self._file, f"{who} {event_name} {time.time()}\n".encode())


class SlowExtractor(RulesExtractor):
    """The offline rules, after a pause. Notes whose window begins and ends: the last word of the first turn."""

    def __init__(self, notes: Notes, pause_s: float) -> None:
        super().__init__()
        self._notes, self._pause_s = notes, pause_s

    async def extract(self, window: Window) -> Extraction:
        """Return the candidates of the rules."""
        who = window.turns[0].text.split()[-1].strip(".")
        self._notes.add(who, "begin")
        await asyncio.sleep(self._pause_s)
        self._notes.add(who, "end")
        return await super().extract(window)


def work(arguments: Arguments) -> None:
    """Work off the queue of a store with a slow extractor."""
    url, log, pause_s, once = arguments

    async def run() -> None:
        extractor = SlowExtractor(Notes(log), float(pause_s))
        async with await open_store(url) as store, workers.open_queue(store) as app:
            worker = workers.Worker(
                store, extractor=extractor, judge=RulesJudge(), new_tracker=_new_tracker, retries=RetryPolicy()
            )
            await worker.run(app, concurrency=2, once=once == "once")

    asyncio.run(run())


def schedule(arguments: Arguments) -> None:
    """Run the job "pending" by a clock of its own, and note when each attempt begins and ends."""
    url, log, origin, speed, period_s, lease_s, longest_s, name = arguments
    notes, dice = Notes(log), random.Random(name)

    async def run() -> None:
        clock, halt = JobClock(datetime.fromisoformat(origin), float(speed)), Halt()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, halt.stop, "SIGTERM")
        async with await open_store(url) as store:
            periodic_jobs = PeriodicJobs(store, RulesExtractor(), RulesJudge(), _new_tracker, clock=clock, stop=halt)

            async def attempt() -> None:
                notes.add(name, "begin")
                try:
                    await asyncio.sleep(dice.uniform(0.4, 1.0) * float(longest_s))
                    await periodic_jobs.process_waiting_sessions()
                finally:
                    notes.add(name, "end")

            notes.add(name, "up")
            await Schedule(
                store,
                [Job("pending", Rhythm(every_s=float(period_s)), attempt)],
                clock=clock,
                jitter_s=5.0,
                lease_s=float(lease_s),
                halt=halt,
                on_end=lambda report: notes.add(name, f"ending-{report.ending.name}"),
            ).run()

    asyncio.run(run())


def _new_tracker() -> CostTracker:
    return CostTracker(Budget())
