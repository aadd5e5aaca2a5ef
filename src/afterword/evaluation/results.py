"""Run every system on every scenario, and score the facts that each system then holds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from afterword.evaluation.scenarios.scenario import Scenario
from afterword.evaluation.scoring.opinions import OpinionReport
from afterword.evaluation.scoring.scorer import score_facts
from afterword.evaluation.scoring.scores import Score, total
from afterword.evaluation.trial import Order, System, Trial, run_trial
from afterword.extractors.extractor import Usage
from afterword.pipeline.batch import Failure
from afterword.pipeline.session_outcome import SessionOutcome


@dataclass(frozen=True, slots=True)
class Result:
    """The trial of one system, with its scores by scenario and in total."""

    trial: Trial
    scores: Mapping[str, Score]
    total: Score

    @property
    def name(self) -> str:
        """The name of the system."""
        return self.trial.system.name

    @property
    def usage(self) -> Usage:
        """The usage of all answered model requests."""
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
    results: Sequence[Result]
    order: Order = "file"
    seed: int = 0
    recording: str | None = None
    opinions: OpinionReport | None = None

    @property
    def has_failures(self) -> bool:
        """Whether any session, or any request for an opinion, failed."""
        return any(result.trial.failures for result in self.results) or bool(self.opinions and self.opinions.failures)


async def evaluate_systems(
    scenarios: Sequence[Scenario],
    systems: Sequence[System],
    *,
    order: Order = "file",
    seed: int = 0,
    recording: str | None = None,
    on_done: Callable[[SessionOutcome | Failure], None] = lambda _: None,
) -> Evaluation:
    """Let every system process every scenario in its own store, and score the facts in it.

    A session that fails yields no facts and still counts in every total.
    """
    stories = [scenario.story() for scenario in scenarios]
    results = []
    for system in systems:
        with tempfile.TemporaryDirectory(prefix="afterword-eval-") as folder:
            trial = await run_trial(stories, system, Path(folder), order=order, seed=seed, on_done=on_done)
        scores = {scenario.id: score_facts(scenario, trial.facts[scenario.id]) for scenario in scenarios}
        results.append(Result(trial, scores, total(scores.values())))
    return Evaluation(scenarios, results, order, seed, recording)
