"""Commands that show and measure the pipeline: the demo and the evaluation."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from afterword.cli.app import FAILED, ExtractorKind, Json, app
from afterword.cli.output import console, day, fact_table, print_json
from afterword.client.json_forms import fact_json, outcome_json

if TYPE_CHECKING:
    from afterword.client.values import SessionOutcome, Turn
    from afterword.demo.story import DemoResult
    from afterword.evaluation.measurement import EvaluationRequest
    from afterword.evaluation.results import Evaluation
    from afterword.settings import Settings


@app.command(name="demo")
def demo_command(
    out: Annotated[Path | None, typer.Option(help="Keep the demo's store in this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Show offline how sessions become facts for an agent."""
    from afterword.demo.story import run_demo

    if out is not None:
        demo = asyncio.run(run_demo(out / "afterword.db"))
    else:
        with tempfile.TemporaryDirectory(prefix="afterword-demo-") as folder:
            demo = asyncio.run(run_demo(Path(folder) / "afterword.db"))
    if as_json:
        sessions = [outcome_json(outcome) for outcome in demo.outcomes]
        facts = [fact_json(fact) for fact in demo.facts]
        print_json({"sessions": sessions, "facts": facts, "block": demo.block, "reply": demo.reply})
        return
    _show_demo(demo)
    if out is not None:
        url = f"sqlite:///{out}/afterword.db"
        console().print(f"\nThe store is kept: AFTERWORD_STORE__URL={url} afterword facts --user mira")


def _show_demo(demo: DemoResult) -> None:
    out = console()
    out.print("Offline rules read three saved sessions of Mira, an invented user; no model, no key, no network.\n")
    for outcome in demo.outcomes:
        _show_demo_session(outcome)
    out.print(fact_table(demo.facts, title="What is known of Mira now, and what was"))
    out.print(f"\nA new session: a real AssistantAgent with FactMemory is asked: {demo.question}")
    out.print(f"What its model is shown first:\n\n{demo.block}\n")
    out.print(f"Its answer (replayed): {demo.reply}")


def _show_demo_session(outcome: SessionOutcome) -> None:
    out, transcript = console(), outcome.transcript
    ignored = [turn for turn in transcript.turns if turn.role in ("tool", "memory", "system", "thought")]
    people = ", ".join(transcript.humans)
    out.print(f"{outcome.session_id} ({transcript.layout}, {day(transcript.started_at)})")
    out.print(
        f"  read      {len(transcript.turns)} turns; taken for a person: {people}; never evidence: {_roles(ignored)}"
    )
    for fact in outcome.changes.learned:
        out.print(f"  kept      {fact.statement}  <- {fact.evidence[0].speaker}: “{fact.evidence[0].quote}”")
    for fact in outcome.changes.repeated:
        out.print(f"  again     {fact.statement}")
    for old, new in outcome.changes.retired:
        reason = f"now: {new.statement}" if new else "withdrawn"
        out.print(f"  replaced  {old.statement}  -> {reason}")
    if outcome.changes.hidden:
        hidden = outcome.changes.hidden
        out.print(f"  hidden    {hidden} fact that she asked to be forgotten; no read shows its words again")
    for reason, count in sorted(outcome.rejected.items()):
        out.print(f"  refused   {count} ({reason})")
    out.print("")


def _roles(turns: Sequence[Turn]) -> str:
    roles = [turn.role.value for turn in turns]
    return ", ".join(f"{roles.count(role)} of {role}" for role in sorted(set(roles))) or "none"


@app.command(name="eval")
def eval_command(
    paths: Annotated[list[Path], typer.Argument(help="Scenarios: files, or folders of *.json.")],
    extractor: ExtractorKind = None,
    replay: Annotated[Path | None, typer.Option(help="A recording of a model's replies, used in its place.")] = None,
    order: Annotated[
        Literal["file", "arrival", "shuffle"], typer.Option(help="The order of the sessions of a scenario.")
    ] = "file",
    seed: Annotated[int, typer.Option(help="The seed of --order shuffle.")] = 0,
    judge_unmatched: Annotated[
        bool, typer.Option("--judge-unmatched", help="Ask the model about facts that match no expected fact.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write a Markdown report to this file, and a chart beside it.")
    ] = None,
    into: Annotated[Path | None, typer.Option(help="Write the scorecard between the two markers in this file.")] = None,
    save_facts: Annotated[
        Path | None, typer.Option("--save-facts", help="Write the facts of each scenario to this folder.")
    ] = None,
    ask: Annotated[
        Path | None, typer.Option(help="Only ask the scenarios' questions of an agent, and write the answers here.")
    ] = None,
    replies: Annotated[Path | None, typer.Option(help="Recorded replies for --ask; new ones are added.")] = None,
    as_json: Json = False,
) -> None:
    """Score the pipeline on scenarios with known facts.

    The offline rules and a store of every sentence are scored beside it.
    It works in a temporary store; the configured store is neither read nor changed.
    """
    from afterword import settings
    from afterword.evaluation.measurement import EvaluationRequest, ask_questions
    from afterword.evaluation.report.report_files import check_markers

    request = EvaluationRequest(paths, extractor, replay, order, seed, judge_unmatched=judge_unmatched)
    request.check()
    if ask is not None:
        asyncio.run(ask_questions(request, settings.load(), ask, replies))
        console().print(f"answers, pages for graders and their key are in {ask}")
        return
    if into is not None:
        check_markers(into)
    evaluation = _measure(request, settings.load(), is_quiet=as_json)
    _show_scores(evaluation, report=report, into=into, save_facts=save_facts, as_json=as_json)
    if evaluation.has_failures:
        sys.exit(FAILED)


def _show_scores(
    evaluation: Evaluation, *, report: Path | None, into: Path | None, save_facts: Path | None, as_json: bool
) -> None:
    from afterword.evaluation.report.full_report import evaluation_json
    from afterword.evaluation.report.report_files import save_scenario_facts, write_report, write_scorecard
    from afterword.evaluation.report.scorecard import scorecard

    card = scorecard(evaluation)
    if into is not None:
        write_scorecard(into, card)
    if report is not None:
        write_report(report, evaluation)
    if save_facts is not None:
        save_scenario_facts(save_facts, evaluation)
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
