"""Evaluate a configured or recorded model and the baselines: run each on every scenario, and score its facts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autogen_core.models import ChatCompletionClient, ModelFamily, ModelInfo

from afterword.composition import open_extractor_and_judge
from afterword.errors import ArgumentInvalid
from afterword.evaluation.scenarios.scenario import Scenario, read_scenarios
from afterword.evaluation.scorer import Score, score_facts, total_score
from afterword.evaluation.trial import EvaluatedSystem, SessionOrder, Trial, UserTurnExtractor, run_trial, story_scopes
from afterword.extractors.extractor import Usage
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.extractors.testing import ScriptedEndpoint, recorded_model, replayed
from afterword.setting_sections import ModelOptions
from afterword.settings import Settings
from afterword.store.database.engine import Store

BASELINES = (
    EvaluatedSystem("offline rules", RulesExtractor(), RulesJudge()),
    EvaluatedSystem("every user turn", UserTurnExtractor(), RulesJudge()),
)
"""The systems with which a model is compared."""


@dataclass(frozen=True, slots=True)
class SystemResult:
    """What one system (an extractor with a judge) made of the scenarios, with its scores by scenario and in total."""

    trial: Trial
    scores: Mapping[str, Score]
    total: Score

    @property
    def name(self) -> str:
        """The name of the system."""
        return self.trial.system.name

    @property
    def usage(self) -> Usage:
        """The calls and tokens of all answered model requests."""
        return self.trial.usage.total

    def per_session(self, amount: int) -> float:
        """Return an amount divided by the number of sessions, including those that failed."""
        return amount / self.total.sessions


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The scenarios and the results of every system. The first system is the one under test.

    `recording` names the file from which a model's replies were played back. Token counts are then estimates.
    """

    scenarios: Sequence[Scenario]
    results: Sequence[SystemResult]
    order: SessionOrder = "file"
    seed: int = 0
    recording: str | None = None

    @property
    def has_failures(self) -> bool:
        """Whether any session failed."""
        return any(result.trial.failures for result in self.results)


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """What is evaluated: scenarios, and an extractor or a recording of a model's replies."""

    paths: Sequence[Path]
    extractor: str | None = None
    replay: Path | None = None
    order: SessionOrder = "file"
    seed: int = 0

    def check(self) -> None:
        """Raise `ArgumentInvalid` if the options do not fit together."""
        if self.replay is not None and self.extractor == "rules":
            raise ArgumentInvalid("the offline rules ask no model: --replay does not go with --extractor rules")


async def measure_systems(
    request: EvaluationRequest,
    settings: Settings,
    *,
    on_begin: Callable[[int], None] = lambda _: None,
    on_done: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Run the requested system and two baselines on every scenario, each in its own store, and score the facts.

    A session that fails yields no facts and still counts in every total. `on_begin` is called with the number of
    sessions, and `on_done` after each. Raises `ArgumentInvalid` for a recording that cannot be used, and
    `SourceInvalid` for scenarios that cannot be used.
    """
    scenarios = read_scenarios(request.paths)
    kind = "model" if request.replay else request.extractor or settings.extractor
    async with (
        _model_options(request.replay, settings.model) as options,
        open_extractor_and_judge(kind, options) as workers,
    ):
        name = "recorded model" if request.replay else f"model {options.name}"
        tested = [EvaluatedSystem(name, workers.extractor, workers.judge)] if kind == "model" else []
        systems = [*tested, *BASELINES]
        on_begin(len(systems) * sum(len(scenario.sessions) for scenario in scenarios))
        results = [await _measure_system(system, scenarios, request, on_done) for system in systems]
        recording = request.replay.name if request.replay else None
        return Evaluation(scenarios, results, request.order, request.seed, recording)


async def _measure_system(
    system: EvaluatedSystem, scenarios: Sequence[Scenario], request: EvaluationRequest, on_done: Callable[[], None]
) -> SystemResult:
    stories = [scenario.story() for scenario in scenarios]
    with TemporaryDirectory(prefix="afterword-eval-") as folder:
        trial = await run_trial(
            stories, system, Path(folder), order=request.order, seed=request.seed, on_done=lambda _: on_done()
        )
    scores = {scenario.id: score_facts(scenario, trial.facts[scenario.id]) for scenario in scenarios}
    return SystemResult(trial, scores, total_score(scores.values()))


async def ask_questions(request: EvaluationRequest, settings: Settings, folder: Path, replies: Path | None) -> None:
    """Process the scenarios, and ask an agent their questions: with its memory, with the history, and with neither.

    The answers are written to `folder`. `replies` is a file of recorded replies, by default `replies.jsonl` in the
    folder. Missing replies are requested from the configured model and added. Raises `ArgumentInvalid`.
    """
    from afterword.evaluation.asking import RecordedReplies, ask_scenarios, write_grading_pages

    scenarios = read_scenarios(request.paths)
    stories = [scenario.story() for scenario in scenarios]
    kind = "model" if request.replay else request.extractor or settings.extractor
    with TemporaryDirectory(prefix="afterword-ask-") as work:
        async with (
            _model_options(request.replay, settings.model) as options,
            open_extractor_and_judge(kind, options) as workers,
        ):
            system = EvaluatedSystem("asked", workers.extractor, workers.judge)
            await run_trial(stories, system, Path(work), order=request.order, seed=request.seed)
        recorded = RecordedReplies(replies or folder / "replies.jsonl", answering_model(settings.model))
        async with Store(f"sqlite:///{Path(work) / 'afterword.db'}", privacy=settings.privacy_of_store()) as store:
            scopes, budget = story_scopes(stories), settings.recall.budget_tokens
            answers = await ask_scenarios(scenarios, scopes, store, recorded, budget_tokens=budget)
    write_grading_pages(answers, folder, seed=request.seed)


def answering_model(options: ModelOptions) -> ChatCompletionClient | None:
    """Return an AutoGen client of the configured model, or None without a key. Then only recorded replies are used."""
    key = options.used_key()
    if not key:
        return None
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    model_info = ModelInfo(
        vision=False, function_calling=False, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
    )
    address = options.base_url or os.environ.get("OPENAI_BASE_URL")
    named: dict[str, Any] = {"base_url": address} if address else {}
    return OpenAIChatCompletionClient(
        model=options.name, api_key=key, model_info=model_info, timeout=options.timeout_s, **named
    )


@asynccontextmanager
async def _model_options(replay: Path | None, configured: ModelOptions) -> AsyncIterator[ModelOptions]:
    """Yield the options of the configured model, or those of a local endpoint that replays a recording."""
    if replay is None:
        yield configured
        return
    try:
        model, script = recorded_model(replay), replayed(replay)
    except OSError as error:
        raise ArgumentInvalid(f"{replay} cannot be read ({error.strerror}); give a recording of replies") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentInvalid(f"{replay} is no recording: {error}") from None
    async with ScriptedEndpoint(script) as endpoint:
        # A recording holds the requests of one mode only, so no other modes are tried.
        mode = "json_schema" if configured.mode == "auto" else configured.mode
        changed = {"base_url": endpoint.base_url, "api_key": "local", "max_retries": 0, "mode": mode}
        yield ModelOptions.model_validate({**configured.model_dump(), **changed, "name": model or configured.name})
