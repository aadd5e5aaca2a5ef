"""Commands that make facts of sessions and show them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from afterword.cli.app import AsOf, InScope, Json, User, app


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="Keep the demo's store and sessions in this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Show the main job offline: three saved sessions become facts, and a real agent recalls them."""
    from afterword.demo import story

    story.show_demo(out, as_json=as_json)


@app.command()
def run(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Saved states: files, folders, manifests, databases; - reads one.")
    ] = None,
    session: Annotated[str | None, typer.Option("--session", help="Only this one; it names what - reads.")] = None,
    user: User = None,
    scope: InScope = None,
    manifest: Annotated[Path | None, typer.Option(help="A manifest; its paths are relative to it.")] = None,
    extractor: Annotated[
        Literal["rules", "model"] | None, typer.Option(help="Who proposes facts (default: as configured).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store and show proposals; nothing counts yet.")] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take and cost; nothing is asked or stored.")
    ] = False,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Questions that a model is asked at once (default: as configured).")
    ] = None,
    defer: Annotated[bool, typer.Option("--defer", help="Hand the queue to `afterword worker` (PostgreSQL).")] = False,
    as_json: Json = False,
) -> None:
    """Process saved sessions; without a path, those that `record_session` has queued.

    A folder is read by its manifest.json, or as <folder>/<user>/<session>.json. What failed is tried again after a
    pause, or at once where it is named, by its file or with --session.
    """
    from afterword.cli import processing

    if defer:
        from afterword.cli import fleet

        fleet.defer(anything_else=bool(paths or manifest or user or scope or session), as_json=as_json)
        return
    processing.run(
        paths or [],
        session=session,
        user=user,
        scope=scope,
        manifest=manifest,
        extractor=extractor,
        dry_run=dry_run,
        only_estimate=estimate,
        concurrency=concurrency,
        as_json=as_json,
    )


@app.command()
def facts(
    user: User = None,
    scope: InScope = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what no longer holds.")] = False,
    as_of: AsOf = None,
    known_at: Annotated[
        str | None, typer.Option("--known-at", help="As believed at this instant (ISO 8601; default: now).")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the facts of one memory: what holds, or held then, as known now, or as believed then."""
    from afterword.cli import asking

    asking.facts(user, scope, everything=everything, as_of=as_of, known_at=known_at, as_json=as_json)


@app.command()
def history(
    fact: Annotated[str, typer.Argument(help="A fact's id, or the first 6 digits or more.")],
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Show how a fact came to be: every assertion, its words, and what was judged about it."""
    from afterword.cli import asking

    asking.history(fact, user, scope, as_json=as_json)


@app.command()
def why(
    session: Annotated[str, typer.Argument(help="A session's id.")],
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Show what a session gave: how it was read, what was kept, what was dropped and for which reason."""
    from afterword.cli import asking

    asking.why(session, user, scope, as_json=as_json)


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: User = None,
    scope: InScope = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many facts.")] = 10,
    as_json: Json = False,
) -> None:
    """Show the facts of one memory that bear on a question, best first."""
    from afterword.cli import asking

    asking.recall(query, user, scope, limit=limit, as_json=as_json)


@app.command(name="eval")
def evaluate(
    paths: Annotated[list[Path], typer.Argument(help="Scenarios: files, or folders of *.json.")],
    extractor: Annotated[
        Literal["rules", "model"] | None, typer.Option(help="Who proposes facts (default: as configured).")
    ] = None,
    replay: Annotated[Path | None, typer.Option(help="Play a model's replies back from this recording.")] = None,
    order: Annotated[
        Literal["file", "arrival", "shuffle"], typer.Option(help="How the sessions of a scenario come in.")
    ] = "file",
    seed: Annotated[int, typer.Option(help="Of --order shuffle.")] = 0,
    judge_unmatched: Annotated[
        bool, typer.Option("--judge-unmatched", help="Ask the model what it thinks of facts that match no gold.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write a Markdown report here, and its chart beside it.")] = None,
    into: Annotated[Path | None, typer.Option(help="Rewrite the scorecard between this file's two markers.")] = None,
    save_facts: Annotated[
        Path | None, typer.Option("--save-facts", help="Write what is held of each scenario into this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Score the pipeline on scenarios whose facts are known, beside the offline rules and a store of every word.

    It works in a temporary store; the configured one is neither read nor written.
    """
    from afterword.cli import evaluating

    asked = evaluating.Asked(paths, extractor, replay, order, seed, judge_unmatched=judge_unmatched)
    evaluating.evaluate(asked, report=report, into=into, save_facts=save_facts, as_json=as_json)
