"""Commands for sessions: process them, list them, show what came of them, and try failed ones again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from afterword.cli.app import ExtractorKind, Json, ScopeName, User, app
from afterword.cli.calls import call_store, chosen_scope
from afterword.cli.output import NAME_PEOPLE, console, counted, day, print_json, skipped_text, table
from afterword.client.json_forms import (
    estimate_json,
    iso_instant,
    pasted_stretches,
    saved_session_json,
    session_details_json,
)
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword import Afterword, ProcessingOptions
    from afterword.client.results import ProcessingReport, SessionDetails, SessionPage
    from afterword.client.values import Scope

STANDARD_INPUT = Path("-")
LONGEST_PASTED = 120
"""The number of characters that are shown of a pasted text."""


@app.command(name="run")
def run_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Saved states: files, folders, manifests or databases; - reads one from standard input."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="Process this session alone; with -, its name.")
    ] = None,
    user: User = None,
    scope: ScopeName = None,
    manifest: Annotated[Path | None, typer.Option(help="A manifest whose paths are relative to it.")] = None,
    trust_manifest: Annotated[
        bool, typer.Option("--trust-manifest", help="Let a manifest name files outside of its folder, and any scope.")
    ] = False,
    extractor: ExtractorKind = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Store and show proposals that change no fact until `afterword apply`.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try sessions that failed before at once, also those that were set aside.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Show the expected cost; no request is sent and nothing is stored.")
    ] = False,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="The largest number of model requests at once (default: as configured).")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="How many processes share the work (default: one per core for many sessions)."),
    ] = None,
    defer: Annotated[
        bool, typer.Option("--defer", help="Give the recorded sessions to `afterword worker` (PostgreSQL).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Process saved sessions, or without a path the recorded ones that wait.

    A folder is read by its manifest.json, or as <folder>/<user>/<session>.json. A session that failed is tried again
    after a pause, or at once with --retry or if it is named: by its file, or with --session.
    """
    if defer:
        if paths or manifest or user or scope or session:
            raise ArgumentInvalid("--defer gives recorded sessions to workers; it takes no path, session or scope")
        _defer(as_json=as_json)
        return
    source = _source(paths or [], session, chosen_scope(user, scope), manifest)
    source.trust_manifest = trust_manifest
    if estimate:
        _estimate(source, extractor, as_json=as_json)
        return
    from afterword import ProcessingOptions
    from afterword.cli.outcomes import finish_run
    from afterword.cli.progress import process_interruptibly

    options = ProcessingOptions(
        extractor, apply=not dry_run, retry_now=retry, concurrency=concurrency, processes=processes
    )
    report = process_interruptibly(source.process, options, is_quiet=as_json)
    finish_run(report, is_proposal=dry_run, as_json=as_json)


class _Source:
    """The sessions that the arguments of `run` name: at paths, in standard input, one that is stored, or the queue."""

    def __init__(
        self, content: Sequence[Path] | bytes, session_id: str | None, scope: Scope | None, manifest: Path | None
    ) -> None:
        self.content, self.session_id, self.scope, self.manifest = content or None, session_id, scope, manifest
        self.trust_manifest = False

    @property
    def is_queue(self) -> bool:
        """Whether no session is named."""
        return self.content is None and self.manifest is None and self.scope is None

    async def process(self, store: Afterword, options: ProcessingOptions) -> ProcessingReport:
        """Process the sessions."""
        if self.is_queue:
            return await store.run_pending(options=options)
        if self.scope is not None:
            return await store.scope(self.scope).process(
                self.content,
                session_id=self.session_id,
                manifest=self.manifest,
                trust_manifest=self.trust_manifest,
                options=options,
            )
        if isinstance(self.content, bytes):
            raise ArgumentInvalid(_ONE_STATE)
        return await store.process(
            self.content,
            manifest=self.manifest,
            trust_manifest=self.trust_manifest,
            session_id=self.session_id,
            options=options,
        )


_ONE_STATE = "- reads one state: name it with --session and say whose with --user or --scope"


def _source(paths: Sequence[Path], session_id: str | None, scope: Scope | None, manifest: Path | None) -> _Source:
    """Return what the arguments name. Raises `ArgumentInvalid` if they do not fit together."""
    if STANDARD_INPUT in paths:
        if len(paths) > 1 or manifest is not None or session_id is None or scope is None:
            raise ArgumentInvalid(_ONE_STATE)
        return _Source(sys.stdin.buffer.read(), session_id, scope, None)
    if not paths and manifest is None and (scope is None) != (session_id is None):
        raise ArgumentInvalid("without a path, --session and --user (or --scope) name one session that is stored")
    return _Source(paths, session_id, scope, manifest)


def _defer(*, as_json: bool) -> None:
    count = call_store(lambda store: store.defer())
    if as_json:
        print_json({"deferred": count})
    else:
        console().print(f"{counted(count, 'session')} handed to the workers")


def _estimate(source: _Source, extractor: str | None, *, as_json: bool) -> None:
    from afterword.cli.outcomes import show_estimate

    estimate = call_store(
        lambda store: store.estimate(
            source.content,
            scope=source.scope,
            manifest=source.manifest,
            trust_manifest=source.trust_manifest,
            session_id=source.session_id,
            extractor=extractor,
        )
    )
    if as_json:
        print_json(estimate_json(estimate))
    else:
        show_estimate(estimate)


@app.command(name="reprocess")
def reprocess_command(
    session: Annotated[
        str | None,
        typer.Argument(help="The id of a session; without one, sessions read by an older extractor are listed."),
    ] = None,
    user: User = None,
    scope: ScopeName = None,
    extractor: ExtractorKind = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply the result at once. Without it, the result is proposed and shown.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read a session again, and show what would change.

    The present extractor reads the turns that are stored. Without a session, those that another extractor has read are
    listed.
    """
    owner = chosen_scope(user, scope)
    if session is None:
        _list_outdated(owner, extractor, as_json=as_json)
        return
    import afterword
    from afterword.cli.outcomes import finish_run

    options = afterword.ProcessingOptions(extractor=extractor, apply=apply)
    report = call_store(
        lambda store: (store.scope(owner) if owner else store).reprocess(session, options=options), known=owner
    )
    finish_run(report, is_proposal=not apply, as_json=as_json)


def _list_outdated(scope: Scope | None, extractor: str | None, *, as_json: bool) -> None:
    outdated = call_store(
        lambda store: (store.scope(scope) if scope else store).outdated(extractor=extractor), known=scope
    )
    if as_json:
        print_json(
            [{"scope": str(old.scope), "session_id": old.session_id, "extractor": old.extractor} for old in outdated]
        )
        return
    rows = [(old.scope, old.session_id, old.extractor) for old in outdated]
    console().print(table("read by another extractor or prompt", ("scope", "session", "read by"), rows))


@app.command(name="consolidate")
def consolidate_command(
    user: User = None,
    scope: ScopeName = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Hold the result until `afterword apply`.")] = False,
    as_json: Json = False,
) -> None:
    """Compare facts of different sessions with each other.

    Pairs that were not compared yet are compared, in one memory or, without --user, in all.
    """
    from afterword.cli.outcomes import exit_by_budget, finish_consolidation

    owner = chosen_scope(user, scope)
    report = call_store(lambda store: store.consolidate(scope=owner, apply=not dry_run), known=owner)
    finish_consolidation(report, as_json=as_json)
    exit_by_budget(report.budget_reached)


@app.command(name="sessions")
def sessions_command(
    user: User = None,
    scope: ScopeName = None,
    state: Annotated[
        Literal["pending", "done", "failed", "set aside"] | None, typer.Option(help="Only sessions in this state.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List sessions with their state, of one memory or of all."""
    owner = chosen_scope(user, scope)
    page: SessionPage = call_store(
        lambda store: (store.scope(owner) if owner else store).sessions(state=state), known=owner
    )
    if as_json:
        print_json([saved_session_json(session) for session in page.sessions])
        return
    rows = [
        (session.scope, session.session_id, session.progress, day(session.started_at), session.failure)
        for session in page.sessions
    ]
    names = ("scope", "session", "state", "began", "failure")
    console().print(table(counted(page.total, "session"), names, rows))


@app.command(name="why")
def why_command(
    session: Annotated[str, typer.Argument(help="The id of a session.")],
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Show what came of a session, and what was rejected.

    It shows how the session was read, which facts it supports, and what was rejected and why.
    """
    owner = chosen_scope(user, scope)
    details = call_store(
        lambda store: store.scope(owner).session(session) if owner else store.session(session), known=owner
    )
    if as_json:
        print_json(session_details_json(details))
    else:
        _show_details(details)


def _show_details(details: SessionDetails) -> None:
    out, session = console(), details.session
    assumed = [f"{name} (assumed, never the owner)" for name in session.assumed]
    people = ", ".join([*session.humans, *assumed]) or "nobody"
    out.print(
        f"{session.session_id} of {session.scope}: {session.progress}, {len(details.turns)} turns ({session.layout})"
    )
    began, ended = iso_instant(session.started_at), iso_instant(session.ended_at)
    out.print(f"from {began} to {ended} (times: {session.time_basis})")
    agents = sorted({entry.turn.speaker for entry in details.turns if entry.turn.role == "agent"})
    out.print(f"taken for people: {people}")
    if agents:
        out.print(f"taken for agents: {', '.join(agents)} (is one a person? {NAME_PEOPLE})")
    if session.failure:
        out.print(f"failed: {session.failure}")
    for reason, count in session.skipped.items():
        out.print(skipped_text(reason, count))
    if details.held:
        out.print(f"{details.held.id} waits for a person: {details.held.reason or 'by the policy of this memory'}")
    facts = [
        (fact.id[:8], fact.statement, "; ".join(evidence.quote for evidence in fact.evidence)) for fact in details.facts
    ]
    out.print(table("facts", ("id", "statement", "quotes"), facts) if facts else "facts: none")
    rejected = [(refusal.reason, refusal.statement, refusal.detail) for refusal in details.rejected]
    out.print(table("rejected", ("reason", "statement", "detail"), rejected) if rejected else "rejected: nothing")
    pasted = [
        (str(number), form, " ".join(text.split())[:LONGEST_PASTED]) for number, form, text in pasted_stretches(details)
    ]
    if pasted:
        out.print(table("pasted by a person, not said by them", ("turn", "form", "words"), pasted))


@app.command(name="retry")
def retry_command(
    session: Annotated[str | None, typer.Argument(help="The id of a session.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Retry every session that failed or was set aside.")
    ] = False,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Queue failed sessions again: the next run tries them."""
    owner = chosen_scope(user, scope)
    if (session is None) != everything:
        raise ArgumentInvalid("name one session, or --all")
    queued = call_store(lambda store: store.retry(session, scope=owner))
    if as_json:
        print_json([{"scope": str(session_scope), "session_id": session_id} for session_scope, session_id in queued])
    else:
        console().print(
            f"{counted(len(queued), 'session')} put back; `afterword run` tries those that were recorded, or give a "
            "path (`afterword run --retry` does both at once)"
        )
