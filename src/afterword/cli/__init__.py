"""The command line. Commands import what they need when they run, so that `--help` answers at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from afterword.store.errors import AfterwordError

FAILED, USAGE, OUT_OF_BUDGET, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(
    name="afterword",
    help="Saved AutoGen sessions in, grounded and dated facts out, and back into the next session.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)

User = Annotated[str | None, typer.Option("--user", help="Whose memory: a user of the default tenant.")]
InScope = Annotated[str | None, typer.Option("--scope", help="Whose memory, in the long form tenant/kind/id.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
AsOf = Annotated[str | None, typer.Option("--as-of", help="Statuses as at this instant (ISO 8601; default: now).")]


def main() -> None:
    """Run the command line.

    Exit with 0 (done), 1 (something failed and was shown), 2 (usage), 3 (the budget is reached) or 130 (interrupted).
    """
    try:
        app()
    except AfterwordError as error:
        typer.secho(f"afterword: {error}", fg="red", err=True)
        sys.exit(USAGE if error.is_usage else FAILED)


def _version(wanted: bool) -> None:
    if wanted:
        from afterword import __version__

        typer.echo(f"afterword {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    """Saved AutoGen sessions in, grounded and dated facts out, and back into the next session."""


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="Keep the demo's store and sessions in this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Show the main job offline: three saved sessions become facts, and a real agent recalls them."""
    from afterword.demo import story

    story.tell(out, as_json=as_json)


@app.command()
def run(
    paths: Annotated[list[Path] | None, typer.Argument(help="Saved states: files, folders, manifests.")] = None,
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
    as_json: Json = False,
) -> None:
    """Process saved sessions; without a path, those that `record_session` has queued.

    A folder is read by its manifest.json, or as <folder>/<user>/<session>.json.
    """
    from afterword.cli import processing

    processing.run(
        paths or [],
        user=user,
        scope=scope,
        manifest=manifest,
        extractor=extractor,
        dry_run=dry_run,
        only_estimate=estimate,
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


@app.command()
def status(as_json: Json = False) -> None:
    """Show what the store holds, what waits, and what failed and why."""
    from afterword.cli import upkeep

    upkeep.status(as_json=as_json)


@app.command()
def migrate(as_json: Json = False) -> None:
    """Bring the store's tables up to date."""
    from afterword.cli import upkeep

    upkeep.migrate(as_json=as_json)


@app.command()
def doctor(
    probe: Annotated[bool, typer.Option("--probe", help="Also ask the model a tiny question in every mode.")] = False,
    as_json: Json = False,
) -> None:
    """Say what is configured, what can be reached, and how to mend the rest."""
    from afterword.cli import upkeep

    upkeep.doctor(probe=probe, as_json=as_json)


@app.command()
def runs(user: User = None, scope: InScope = None, as_json: Json = False) -> None:
    """List the runs of one memory: what was processed by whom, what it cost, and where it stands."""
    from afterword.cli import deciding

    deciding.list_runs(user, scope, as_json=as_json)


@app.command()
def apply(run_id: Annotated[int, typer.Argument(help="A proposed or held run.")], as_json: Json = False) -> None:
    """Let a stored proposal count."""
    from afterword.cli import deciding

    deciding.apply(run_id, as_json=as_json)


@app.command()
def undo(run_id: Annotated[int, typer.Argument(help="An applied run.")], as_json: Json = False) -> None:
    """Leave a run out, with everything it caused, as if it had never been."""
    from afterword.cli import deciding

    deciding.undo(run_id, as_json=as_json)


@app.command()
def review(
    user: User = None,
    scope: InScope = None,
    approve: Annotated[str | None, typer.Option(help="A contest's number, or a held run as run:ID.")] = None,
    reject: Annotated[str | None, typer.Option(help="A contest's number, or a held run as run:ID.")] = None,
    keep_both: Annotated[str | None, typer.Option("--keep-both", help="A contest's number.")] = None,
    as_json: Json = False,
) -> None:
    """List what awaits a person's decision, or decide it."""
    from afterword.cli import deciding

    deciding.review(user, scope, approve=approve, reject=reject, keep_both=keep_both, as_json=as_json)


@app.command()
def edit(
    fact: Annotated[str, typer.Argument(help="A fact's id, or the first 6 digits or more.")],
    statement: Annotated[str | None, typer.Option(help="The sentence as it should be.")] = None,
    value: Annotated[str | None, typer.Option(help="The value alone, where it differs.")] = None,
    about: Annotated[str | None, typer.Option(help="Whom or what it is about, where that is wrong or unclear.")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="It held until now; else it was wrong.")] = False,
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Put a fact right: a person's word outranks extraction."""
    from afterword.cli import deciding

    deciding.edit(fact, user, scope, statement=statement, value=value, about=about, changed=changed, as_json=as_json)


@app.command()
def confirm(
    fact: Annotated[str, typer.Argument(help="A fact's id, or the first 6 digits or more.")],
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Stand for a fact as it is."""
    from afterword.cli import deciding

    deciding.confirm(fact, user, scope, as_json=as_json)


@app.command()
def policy(
    what: Annotated[
        Literal["auto", "hold-retirements", "hold-all"] | None, typer.Argument(help="What a person sees first.")
    ] = None,
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Show or set what is held for a person before it counts."""
    from afterword.cli import deciding

    deciding.policy(what, user, scope, as_json=as_json)


@app.command()
def reprocess(
    session: Annotated[str | None, typer.Argument(help="A session's id; without one, lists what is outdated.")] = None,
    user: User = None,
    scope: InScope = None,
    extractor: Annotated[Literal["rules", "model"] | None, typer.Option(help="Who proposes facts.")] = None,
    now: Annotated[bool, typer.Option("--apply", help="Let it count at once; else it is proposed and shown.")] = False,
    as_json: Json = False,
) -> None:
    """Read a session's kept turns again with the present extractor, and show the difference first."""
    from afterword.cli import processing

    processing.reprocess(session, user, scope, extractor=extractor, now=now, as_json=as_json)


@app.command()
def consolidate(
    user: User = None,
    scope: InScope = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Hold the result for `apply`.")] = False,
    as_json: Json = False,
) -> None:
    """Judge what was left unjudged over all sessions of one memory (of every memory without --user)."""
    from afterword.cli import processing

    processing.consolidate(user, scope, dry_run=dry_run, as_json=as_json)


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
