"""Commands that show and measure the pipeline: the demo and the evaluation."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from afterword.cli.app import FAILED, ExtractorKind, Json, app
from afterword.cli.printing import console, date_text, fact_table, print_json, print_lines, print_result
from afterword.client.forms.memory_forms import fact_json, outcome_json

if TYPE_CHECKING:
    from afterword import SessionOutcome
    from afterword.demo.story import DemoResult
    from afterword.evaluation.measurement import Evaluation, EvaluationRequest
    from afterword.settings import Settings


@app.command(name="demo")
def demo_command(
    out: Annotated[Path | None, typer.Option(help="Keep the demo's store in this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Show offline how sessions become facts for an agent."""
    from afterword.demo.story import run_demo

    with tempfile.TemporaryDirectory(prefix="afterword-demo-") if out is None else nullcontext(out) as folder:
        demo = asyncio.run(run_demo(Path(folder) / "afterword.db"))
    url = f"sqlite:///{out}/afterword.db"
    print_result(
        {
            "sessions": [outcome_json(outcome) for outcome in demo.outcomes],
            "facts": [fact_json(fact) for fact in demo.facts],
            "block": demo.block,
            "reply": demo.reply,
        },
        *_demo_lines(demo),
        None if out is None else f"\nThe store is kept: AFTERWORD_STORE__URL={url} afterword facts --user mira",
        as_json=as_json,
    )


def _demo_lines(demo: DemoResult) -> Iterator[object]:
    yield "Offline rules read three saved sessions of Mira, an invented user; no model, no key, no network.\n"
    for outcome in demo.outcomes:
        yield from _session_lines(outcome)
    yield fact_table(demo.facts, title="What is known of Mira now, and what was")
    yield f"\nA new session: a real AssistantAgent with FactMemory is asked: {demo.question}"
    yield f"What its model is shown first:\n\n{demo.block}\n"
    yield f"Its answer (replayed): {demo.reply}"


def _session_lines(outcome: SessionOutcome) -> Iterator[str]:
    transcript, changes = outcome.transcript, outcome.changes
    ignored = Counter(
        turn.role.value for turn in transcript.turns if turn.role in ("tool", "memory", "system", "thought")
    )
    never = ", ".join(f"{count} of {role}" for role, count in sorted(ignored.items())) or "none"
    people = ", ".join(transcript.humans)
    yield f"{outcome.session_id} ({transcript.layout}, {date_text(transcript.started_at)})"
    yield f"  read      {len(transcript.turns)} turns; taken for a person: {people}; never evidence: {never}"
    for fact in changes.learned:
        yield f"  kept      {fact.statement}  <- {fact.evidence[0].speaker}: “{fact.evidence[0].quote}”"
    yield from (f"  again     {fact.statement}" for fact in changes.repeated)
    for old, new in changes.retired:
        yield f"  replaced  {old.statement}  -> {f'now: {new.statement}' if new else 'withdrawn'}"
    if changes.hidden:
        yield f"  hidden    {changes.hidden} fact that she asked to be forgotten; no read shows its words again"
    yield from (f"  refused   {count} ({reason})" for reason, count in sorted(outcome.rejected.items()))
    yield ""


@app.command(name="eval")
def eval_command(
    paths: Annotated[list[Path], typer.Argument(help="Scenarios: files, or folders of *.json.")],
    extractor: ExtractorKind = None,
    replay: Annotated[Path | None, typer.Option(help="A recording of a model's replies, used in its place.")] = None,
    order: Annotated[
        Literal["file", "arrival", "shuffle"], typer.Option(help="The order of the sessions of a scenario.")
    ] = "file",
    seed: Annotated[int, typer.Option(help="The seed of --order shuffle.")] = 0,
    into: Annotated[Path | None, typer.Option(help="Write the scorecard between the two markers in this file.")] = None,
    save_facts: Annotated[
        Path | None, typer.Option("--save-facts", help="Write the facts of each scenario to this folder.")
    ] = None,
    ask: Annotated[
        Path | None,
        typer.Option(help="Only ask an agent the scenarios' questions, and write the answers to this folder."),
    ] = None,
    replies: Annotated[Path | None, typer.Option(help="Recorded replies for --ask; new ones are added.")] = None,
    as_json: Json = False,
) -> None:
    """Score the pipeline on scenarios with known facts.

    For comparison, the offline rules and a system that stores every sentence are scored, too.
    It works in a temporary store; the configured store is neither read nor changed.
    """
    from afterword import settings
    from afterword.evaluation.measurement import EvaluationRequest, ask_questions
    from afterword.evaluation.report import check_scorecard_markers

    request = EvaluationRequest(paths, extractor, replay, order, seed)
    request.check()
    if ask is not None:
        asyncio.run(ask_questions(request, settings.load(), ask, replies))
        print_lines(f"answers, pages for graders and their key are in {ask}")
        return
    if into is not None:
        check_scorecard_markers(into)
    evaluation = _measure(request, settings.load(), is_quiet=as_json)
    _save_and_print_scores(evaluation, into=into, save_facts=save_facts, as_json=as_json)
    if evaluation.has_failures:
        sys.exit(FAILED)


def _save_and_print_scores(
    evaluation: Evaluation, *, into: Path | None, save_facts: Path | None, as_json: bool
) -> None:
    from afterword.evaluation.report import (
        evaluation_json,
        save_tested_system_facts,
        scorecard,
        write_scorecard_between_markers,
    )

    card = scorecard(evaluation)
    if into is not None:
        write_scorecard_between_markers(into, card)
    if save_facts is not None:
        save_tested_system_facts(save_facts, evaluation)
    if as_json:
        print_json(evaluation_json(evaluation))
    else:
        sys.stdout.write(f"{card}\n")


def _measure(request: EvaluationRequest, settings: Settings, *, is_quiet: bool) -> Evaluation:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from afterword.evaluation.measurement import measure_systems

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(to_errors=True), disable=is_quiet, transient=True) as progress:
        task = progress.add_task("sessions", total=None)
        return asyncio.run(
            measure_systems(
                request,
                settings,
                on_begin=lambda total: progress.update(task, total=total),
                on_done=lambda: progress.advance(task),
            )
        )
