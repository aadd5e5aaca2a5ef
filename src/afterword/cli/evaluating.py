"""The command that measures: eval."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from afterword import settings
from afterword.cli.app import FAILED
from afterword.cli.output import UsageInvalid, console, print_json
from afterword.composition import model_client, open_extractor_and_judge
from afterword.evaluation.baselines import EveryUserTurn
from afterword.evaluation.report.chart import chart
from afterword.evaluation.report.full_report import evaluation_json, full_report
from afterword.evaluation.report.scorecard import scorecard, written_into
from afterword.evaluation.results import Evaluation, evaluate_systems
from afterword.evaluation.scenarios.scenario import read_scenarios
from afterword.evaluation.scoring.opinions import ModelOpinion, ask_opinions
from afterword.evaluation.scoring.scorer import exported_fact
from afterword.evaluation.trial import Order, System
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.extractors.testing import ScriptedEndpoint, recorded_model, replayed
from afterword.settings import ModelOptions, Settings


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured, and with whom."""

    paths: Sequence[Path]
    extractor: str | None = None
    replay: Path | None = None
    order: Order = "file"
    seed: int = 0
    judge_unmatched: bool = False


def evaluate(asked: Asked, *, report: Path | None, into: Path | None, save_facts: Path | None, as_json: bool) -> None:
    """Measure, write what is to be written, print the scorecard, and exit with 1 where anything failed."""
    if asked.replay is not None and asked.extractor == "rules":
        raise UsageInvalid("--replay plays a model's replies back, and the rules ask none; leave one of the two out")
    before = _text_of(into) if into else ""
    evaluation = asyncio.run(evaluated(asked, settings.load(), quiet=as_json))
    card = scorecard(evaluation)
    if into:
        _write(into, written_into(before, card, str(into)))
    if report:
        drawing = report.with_suffix(".svg")
        _write(report, full_report(evaluation, drawing.name))
        _write(drawing, chart(evaluation.results))
    if save_facts:
        _save_facts(evaluation, save_facts)
    if as_json:
        print_json(evaluation_json(evaluation))
    else:
        sys.stdout.write(f"{card}\n")
    if evaluation.has_failures:
        sys.exit(FAILED)


async def evaluated(asked: Asked, configured: Settings, *, quiet: bool) -> Evaluation:
    """Return what was asked for and the two baselines beside it, all scored; with `quiet` no progress is shown."""
    scenarios = read_scenarios(asked.paths)
    kind = "model" if asked.replay else asked.extractor or configured.extractor
    async with _options(asked.replay, configured.model) as options, open_extractor_and_judge(kind, options) as workers:
        rules = System("offline rules", RulesExtractor(), RulesJudge())
        name = "recorded model" if asked.replay else f"model {options.name}"
        systems = [System(name, workers.extractor, workers.judge)] if kind == "model" else []
        systems += [rules, System("every user turn", EveryUserTurn(), RulesJudge())]
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console(to_errors=True), disable=quiet, transient=True) as progress:
            sessions = sum(len(scenario.sessions) for scenario in scenarios)
            task = progress.add_task("sessions", total=sessions * len(systems))
            evaluation = await evaluate_systems(
                scenarios,
                systems,
                order=asked.order,
                seed=asked.seed,
                recording=asked.replay.name if asked.replay else None,
                on_done=lambda _: progress.advance(task),
            )
        if not asked.judge_unmatched:
            return evaluation
        async with model_client(options) as client:
            facts = evaluation.results[0].trial.facts
            return replace(evaluation, opinions=await ask_opinions(ModelOpinion(client), scenarios, facts))


@asynccontextmanager
async def _options(replay: Path | None, configured: ModelOptions) -> AsyncIterator[ModelOptions]:
    """Give the model's options: as configured, or those of an endpoint on loopback that plays a recording back."""
    if replay is None:
        yield configured
        return
    try:
        model, script = recorded_model(replay), replayed(replay)
    except OSError as error:
        raise UsageInvalid(f"{replay} cannot be read ({error.strerror}); give a recording of replies") from None
    except (KeyError, TypeError, ValueError) as error:
        raise UsageInvalid(f"{replay} is no recording: {error}") from None
    async with ScriptedEndpoint(script) as endpoint:
        # A recording answers the requests of one mode; trying others would ask for what it lacks.
        mode = "json_schema" if configured.mode == "auto" else configured.mode
        changed = {"base_url": endpoint.base_url, "api_key": "local", "max_retries": 0, "mode": mode}
        yield ModelOptions.model_validate({**configured.model_dump(), **changed, "name": model or configured.name})


def _text_of(path: Path) -> str:
    """Return the text of a file that is to be rewritten, and say at once where it cannot be."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageInvalid(f"{path} cannot be read ({error.strerror})") from None
    written_into(text, "", str(path))
    return text


def _save_facts(evaluation: Evaluation, folder: Path) -> None:
    for scenario, facts in evaluation.results[0].trial.facts.items():
        told = json.dumps([exported_fact(fact) for fact in facts], ensure_ascii=False, indent=1)
        _write(folder / f"{scenario}.json", f"{told}\n")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageInvalid(f"{path} cannot be written ({error.strerror})") from None
