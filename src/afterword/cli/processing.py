"""`afterword run`: saved sessions in, facts out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from afterword import settings
from afterword.cli import FAILED
from afterword.cli.output import UsageInvalid, chosen_scope, console, fact_json, opened, print_json, table
from afterword.extractors.clients import ModelClient, ModelSettings
from afterword.extractors.extractor import Extractor
from afterword.extractors.model import ModelExtractor
from afterword.extractors.rules import RulesExtractor
from afterword.pipeline.batch import Failure, queued, run_batch
from afterword.pipeline.session import Outcome, Saved
from afterword.pipeline.sources import find_sessions
from afterword.settings import ModelOptions, Settings
from afterword.store.transcripts import TimeBasis


def run(
    paths: Sequence[Path],
    *,
    user: str | None,
    scope: str | None,
    manifest: Path | None,
    extractor: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Process the sessions at the paths, or the queued ones, and exit with 1 where any failed."""
    configured = settings.load()
    whose = chosen_scope(user, scope)
    found = find_sessions(paths, scope=whose, manifest=manifest) if paths or manifest else None
    if found is None and whose is not None:
        raise UsageInvalid("--user and --scope say whose files these are; give a path with them")
    ended = asyncio.run(_run(found, extractor or configured.extractor, configured, dry_run=dry_run, quiet=as_json))
    if as_json:
        print_json([outcome_json(one) for one in ended])
    else:
        show(ended, dry_run=dry_run)
    if any(isinstance(one, Failure) for one in ended):
        sys.exit(FAILED)


async def _run(
    found: Sequence[Saved] | None, kind: str, configured: Settings, *, dry_run: bool, quiet: bool
) -> list[Outcome | Failure]:
    async with opened() as store, extracting(kind, configured.model) as extractor:
        waiting = await queued(store) if found is None else found
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console(to_errors=True), disable=quiet, transient=True) as progress:
            task = progress.add_task("sessions", total=len(waiting))
            return await run_batch(
                store, waiting, extractor=extractor, apply=not dry_run, on_done=lambda _: progress.advance(task)
            )


@asynccontextmanager
async def extracting(kind: str, options: ModelOptions) -> AsyncIterator[Extractor]:
    """Open the configured extractor; a model's connections are closed at the end."""
    if kind == "rules":
        yield RulesExtractor()
        return
    made = ModelSettings(
        model=options.name,
        base_url=options.base_url,
        api_key=options.api_key.get_secret_value() if options.api_key else None,
        timeout_s=options.timeout_s,
        max_retries=options.max_retries,
        mode=options.mode,
    )
    async with ModelClient(made) as client:
        yield ModelExtractor(client)


def outcome_json(one: Outcome | Failure) -> dict[str, Any]:
    """Return what became of a session as machines get it."""
    whose = {"scope": str(one.scope), "session_id": one.session_id}
    if isinstance(one, Failure):
        return {**whose, "result": "failed", "reason": one.reason}
    return {
        **whose,
        "result": result(one),
        "run": one.run_id,
        "turns": len(one.transcript.turns),
        "layout": one.transcript.layout,
        "time_basis": str(one.transcript.time_basis) if one.transcript.time_basis else None,
        "humans": list(one.transcript.humans),
        "owner": list(one.owners),
        "skipped": dict(one.transcript.skipped),
        "refused": dict(one.rejected),
        "learned": [fact_json(fact) for fact in one.changes.learned],
        "repeated": [fact_json(fact) for fact in one.changes.repeated],
        "retired": [
            {"fact": fact_json(old), "by": fact_json(new) if new else None} for old, new in one.changes.retired
        ],
        "contested": [fact_json(fact) for fact in one.changes.contested],
        "calls": one.usage.calls,
        "prompt_tokens": one.usage.prompt_tokens,
        "completion_tokens": one.usage.completion_tokens,
    }


def result(one: Outcome) -> str:
    """Return in one word what became of a session."""
    if one.run_id is None:
        return "unchanged" if one.transcript.turns else "empty"
    return "done" if one.applied else "proposed"


def show(ended: Sequence[Outcome | Failure], *, dry_run: bool) -> None:
    """Print what became of each session, what failed and why, and what the user should know about the times."""
    out = console()
    names = ("scope", "session", "result", "turns", "people", "learned", "again", "retired", "refused", "tokens")
    rows = [_row(one) for one in ended]
    if not rows:
        out.print("nothing to do: no session is queued; give a path to process saved files")
        return
    out.print(table("proposed, nothing counts yet" if dry_run else "processed", names, rows))
    for one in ended:
        if isinstance(one, Failure):
            out.print(f"failed: {one.session_id} of {one.scope}: {one.reason}")
        else:
            _show_changes(one)
    guessed = sum(isinstance(one, Outcome) and one.transcript.time_basis is TimeBasis.FILE for one in ended)
    if guessed:
        out.print(
            f"{guessed} of {len(ended)} sessions carry no times: their files' times were taken, and a guess retires "
            "nothing. A manifest with started_at mends that."
        )


def _row(one: Outcome | Failure) -> list[object]:
    if isinstance(one, Failure):
        return [one.scope, one.session_id, "failed"]
    moved = one.changes
    people = ", ".join(f"{name} (owner)" if name in one.owners else name for name in one.transcript.humans)
    counts = [len(moved.learned), len(moved.repeated), len(moved.retired), sum(one.rejected.values())]
    tokens = one.usage.prompt_tokens + one.usage.completion_tokens
    return [one.scope, one.session_id, result(one), len(one.transcript.turns), people or "none", *counts, tokens]


def _show_changes(one: Outcome) -> None:
    out = console()
    for fact in one.changes.learned:
        out.print(f"  + {fact.statement}")
    for old, new in one.changes.retired:
        out.print(f"  - {old.statement} ({old.status}{f': {new.statement}' if new else ''})")
    for fact in one.changes.contested:
        out.print(f"  ? {fact.statement} (contested)")
    for reason, count in sorted(one.transcript.skipped.items()):
        out.print(f"  . {one.session_id}: {reason}: {count}")
