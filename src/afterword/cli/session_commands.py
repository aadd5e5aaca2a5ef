"""Commands for sessions: process, reprocess, list and explain them, and retry failed ones.

Also the command that consolidates memories.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

import afterword
from afterword.cli.app import ExtractorKind, Json, ScopeName, User, app, call_store, chosen_scope
from afterword.cli.printing import (
    NAME_PEOPLE,
    NO_FACT_FOUND,
    count_with_noun,
    date_text,
    print_result,
    skipped_text,
    table,
)
from afterword.client.forms.memory_forms import iso_instant, pasted_stretches, saved_session_json, session_details_json
from afterword.client.forms.store_forms import estimate_json
from afterword.errors import ArgumentInvalid

STANDARD_INPUT = Path("-")
LONGEST_PASTED = 120
"""The number of characters that are shown of a pasted text."""


StatePaths = Annotated[
    list[Path] | None,
    typer.Argument(help="Saved states: files, folders, manifests or databases; - reads one from standard input."),
]
NamedSession = Annotated[
    str | None,
    typer.Option("--session", help="Process only this session. With the path -, this names the session."),
]
TrustManifest = Annotated[
    bool, typer.Option("--trust-manifest", help="Let a manifest name files outside of its folder, and any scope.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Store and show proposals that change no fact until `afterword apply`.")
]
Retry = Annotated[bool, typer.Option("--retry", help="Try failed sessions again now, also those that were set aside.")]
EstimateOnly = Annotated[
    bool, typer.Option("--estimate", help="Show the expected cost; no request is sent and nothing is stored.")
]
Concurrency = Annotated[
    int | None, typer.Option(min=1, help="The largest number of model requests at once (default: as configured).")
]
ProcessCount = Annotated[
    int | None,
    typer.Option(min=1, help="How many processes share the work (default: one per core for many sessions)."),
]
Defer = Annotated[bool, typer.Option("--defer", help="Give the recorded sessions to `afterword worker` (PostgreSQL).")]


@app.command(name="run")
def run_command(
    paths: StatePaths = None,
    session: NamedSession = None,
    user: User = None,
    scope: ScopeName = None,
    manifest: Annotated[Path | None, typer.Option(help="A manifest whose paths are relative to it.")] = None,
    trust_manifest: TrustManifest = False,
    extractor: ExtractorKind = None,
    dry_run: DryRun = False,
    retry: Retry = False,
    estimate: EstimateOnly = False,
    concurrency: Concurrency = None,
    processes: ProcessCount = None,
    defer: Defer = False,
    as_json: Json = False,
) -> None:
    """Process saved sessions, or without a path the recorded ones that wait.

    A folder is read by its manifest.json, or as <folder>/<user>/<session>.json. A session that failed is tried again
    after a pause, or at once with --retry or if it is named: by its file, or with --session.
    """
    if defer:
        others = paths, manifest, user, scope, session, extractor, dry_run, retry, estimate, concurrency, processes
        if any(others):
            raise ArgumentInvalid("--defer gives all recorded sessions to workers: it takes no path, and only --json")
        _defer(as_json=as_json)
        return
    source = _SessionSource(paths, session, chosen_scope(user, scope), manifest, trust_manifest)
    if estimate:
        _print_estimate(source, extractor, as_json=as_json)
        return
    options = afterword.ProcessingOptions(
        extractor, apply=not dry_run, retry_now=retry, concurrency=concurrency, processes=processes
    )
    _process(source, options, as_json=as_json)


def _defer(*, as_json: bool) -> None:
    count = call_store(lambda store: store.defer())
    print_result({"deferred": count}, f"{count_with_noun(count, 'session')} handed to the workers", as_json=as_json)


class _SessionSource:
    """The sessions that the arguments of `run` name: at paths, in standard input, in the queue, or one stored session.

    Raises `ArgumentInvalid` if the arguments do not fit together.
    """

    def __init__(
        self,
        paths: Sequence[Path] | None,
        session_id: str | None,
        scope: afterword.Scope | None,
        manifest: Path | None,
        trust_manifest: bool,
    ) -> None:
        _check_session_source(paths, session_id, scope, manifest)
        is_standard_input = paths is not None and STANDARD_INPUT in paths
        self.content: Sequence[Path] | bytes | None = (sys.stdin.buffer.read() if is_standard_input else paths) or None
        self.scope = scope
        self.selection: dict[str, Any] = {
            "session_id": session_id,
            "manifest": manifest,
            "trust_manifest": trust_manifest,
        }

    async def process(
        self, store: afterword.Afterword, options: afterword.ProcessingOptions
    ) -> afterword.ProcessingReport:
        """Process the sessions."""
        if self.scope is not None:
            return await store.scope(self.scope).process(self.content, **self.selection, options=options)
        if self.content is None and self.selection["manifest"] is None:
            return await store.run_pending(options=options)
        return await store.process(cast("Sequence[Path] | None", self.content), **self.selection, options=options)


def _check_session_source(
    paths: Sequence[Path] | None, session_id: str | None, scope: afterword.Scope | None, manifest: Path | None
) -> None:
    if paths and STANDARD_INPUT in paths:
        if len(paths) > 1 or manifest is not None or session_id is None or scope is None:
            raise ArgumentInvalid(
                "- reads one state: name its session with --session, and its memory with --user or --scope"
            )
    elif not paths and manifest is None and (scope is None) != (session_id is None):
        raise ArgumentInvalid(
            "without a path, give --session and --user (or --scope) for a stored session, or neither for the queue"
        )


def _process(source: _SessionSource, options: afterword.ProcessingOptions, *, as_json: bool) -> None:
    from afterword.cli.outcomes import finish_processing_command
    from afterword.cli.progress import process_interruptibly

    report = process_interruptibly(source.process, options, is_quiet=as_json)
    finish_processing_command(report, is_proposal=not options.apply, as_json=as_json)


def _print_estimate(source: _SessionSource, extractor: str | None, *, as_json: bool) -> None:
    from afterword.cli.outcomes import estimate_table

    estimate = call_store(
        lambda store: store.estimate(source.content, scope=source.scope, **source.selection, extractor=extractor)
    )
    print_result(estimate_json(estimate), estimate_table(estimate), as_json=as_json)


SessionToReprocess = Annotated[
    str | None,
    typer.Argument(help="The id of a session; without one, sessions read by an older extractor are listed."),
]
ApplyAtOnce = Annotated[
    bool,
    typer.Option("--apply", help="Apply the result at once. Without this option, it is only proposed and shown."),
]


@app.command(name="reprocess")
def reprocess_command(
    session: SessionToReprocess = None,
    user: User = None,
    scope: ScopeName = None,
    extractor: ExtractorKind = None,
    apply: ApplyAtOnce = False,
    as_json: Json = False,
) -> None:
    """Read a session again, and show what would change.

    The present extractor reads the stored turns. Without a session, the sessions that another extractor has read are
    listed.
    """
    owner = chosen_scope(user, scope)
    if session is None:
        _list_outdated_sessions(owner, extractor, as_json=as_json)
        return
    from afterword.cli.outcomes import finish_processing_command

    options = afterword.ProcessingOptions(extractor=extractor, apply=apply)
    report = call_store(
        lambda store: (store.scope(owner) if owner else store).reprocess(session, options=options), known_scope=owner
    )
    finish_processing_command(report, is_proposal=not apply, as_json=as_json)


def _list_outdated_sessions(owner: afterword.Scope | None, extractor: str | None, *, as_json: bool) -> None:
    outdated = call_store(
        lambda store: (store.scope(owner) if owner else store).outdated(extractor=extractor), known_scope=owner
    )
    rows = [(str(old.scope), old.session_id, old.extractor) for old in outdated]
    listed = table("read by another extractor or prompt", ("scope", "session", "read by"), rows)
    names = ("scope", "session_id", "extractor")
    print_result([dict(zip(names, row, strict=True)) for row in rows], listed, as_json=as_json)


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
    from afterword.cli.outcomes import finish_consolidation_command

    owner = chosen_scope(user, scope)
    report = call_store(lambda store: store.consolidate(scope=owner, apply=not dry_run), known_scope=owner)
    finish_consolidation_command(report, as_json=as_json)


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
    page: afterword.SessionPage = call_store(
        lambda store: (store.scope(owner) if owner else store).sessions(state=state), known_scope=owner
    )
    rows = [
        (session.scope, session.session_id, session.progress, date_text(session.started_at), session.failure)
        for session in page.sessions
    ]
    listed = table(count_with_noun(page.total, "session"), ("scope", "session", "state", "began", "failure"), rows)
    print_result([saved_session_json(session) for session in page.sessions], listed, as_json=as_json)


@app.command(name="why")
def why_command(
    session: Annotated[str, typer.Argument(help="The id of a session.")],
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Show which facts came from a session, and what was rejected and why.

    It also shows who was taken for a person, and what was left out.
    """
    owner = chosen_scope(user, scope)
    details = call_store(
        lambda store: store.scope(owner).session(session) if owner else store.session(session), known_scope=owner
    )
    print_result(session_details_json(details), *_details_lines(details), as_json=as_json)


def _details_lines(details: afterword.SessionDetails) -> Iterator[object]:
    yield from _reading_lines(details)
    facts = [
        (fact.id[:8], fact.statement, "; ".join(evidence.quote for evidence in fact.evidence)) for fact in details.facts
    ]
    yield table("facts", ("id", "statement", "quotes"), facts) if facts else "facts: none"
    yield from (f"{NO_FACT_FOUND}: {statement} (see `afterword review`)" for statement in details.unfound)
    rejected = [(refusal.reason, refusal.statement, refusal.detail) for refusal in details.rejected]
    yield table("rejected", ("reason", "statement", "detail"), rejected) if rejected else "rejected: nothing"
    pasted = [
        (str(number), form, " ".join(text.split())[:LONGEST_PASTED]) for number, form, text in pasted_stretches(details)
    ]
    if pasted:
        yield table("pasted by a person, not said by them", ("turn", "form", "words"), pasted)


def _reading_lines(details: afterword.SessionDetails) -> Iterator[str]:
    """Yield how a session was read: its state, its times, who was taken for a person, and what was left out."""
    session = details.session
    assumed = [f"{name} (assumed, never the owner)" for name in session.assumed]
    yield f"{session.session_id} of {session.scope}: {session.progress}, {len(details.turns)} turns ({session.layout})"
    began, ended = iso_instant(session.started_at), iso_instant(session.ended_at)
    yield f"from {began} to {ended} (times: {session.time_basis})"
    yield f"taken for people: {', '.join([*session.humans, *assumed]) or 'nobody'}"
    agents = sorted({entry.turn.speaker for entry in details.turns if entry.turn.role == "agent"})
    if agents:
        yield f"taken for agents: {', '.join(agents)} (is one a person? {NAME_PEOPLE})"
    if session.failure:
        yield f"failed: {session.failure}"
    yield from (skipped_text(reason, count) for reason, count in session.skipped.items())
    if details.held:
        yield f"{details.held.id} waits for a person: {details.held.reason or 'by the policy of this memory'}"


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
    print_result(
        [{"scope": str(session_scope), "session_id": session_id} for session_scope, session_id in queued],
        f"{count_with_noun(len(queued), 'session')} put back; `afterword run` tries those that were recorded, or give "
        "a path (`afterword run --retry` does both at once)",
        as_json=as_json,
    )
