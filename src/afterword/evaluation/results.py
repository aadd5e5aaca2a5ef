"""Systems over scenarios: each story goes through each system, and what it then holds is scored beside the others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from afterword.evaluation.measure import score
from afterword.evaluation.opinions import Opinions
from afterword.evaluation.scenarios import Scenario
from afterword.evaluation.scores import Score, total
from afterword.evaluation.trial import Order, System, Trial, run_trial
from afterword.extractors.extractor import Usage
from afterword.pipeline.batch import Failure
from afterword.pipeline.session import Outcome


@dataclass(frozen=True, slots=True)
class Result:
    """One system: what became of the stories in it, and how that scores, by scenario and in all."""

    trial: Trial
    scores: Mapping[str, Score]
    total: Score

    @property
    def name(self) -> str:
        """The name of the system."""
        return self.trial.system.name

    @property
    def spent(self) -> Usage:
        """What its answered questions cost in all."""
        return self.trial.spent.whole

    def a_session(self, amount: int) -> float:
        """Return an amount by the number of sessions, failed ones too."""
        return amount / self.total.sessions


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scenarios and what each system made of them; the first system is the one that was asked for.

    `recording` names the file that a model's replies were played back from; token counts are estimates then.
    """

    scenarios: Sequence[Scenario]
    results: Sequence[Result]
    order: Order = "file"
    seed: int = 0
    recording: str | None = None
    opinions: Opinions | None = None

    @property
    def has_failures(self) -> bool:
        """Whether any session, or any question for an opinion, failed."""
        return any(one.trial.failures for one in self.results) or bool(self.opinions and self.opinions.failures)

    def with_opinions(self, opinions: Opinions) -> Evaluation:
        """Return the evaluation with a model's opinions beside it; no figure changes."""
        return replace(self, opinions=opinions)


async def evaluate(
    scenarios: Sequence[Scenario],
    systems: Sequence[System],
    *,
    order: Order = "file",
    seed: int = 0,
    recording: str | None = None,
    on_done: Callable[[Outcome | Failure], None] = lambda _: None,
) -> Evaluation:
    """Let every system process every scenario in a store of its own, and score what each then holds.

    A session that fails gives no facts and stays in every denominator.
    """
    stories = [scenario.story() for scenario in scenarios]
    results = []
    for system in systems:
        with tempfile.TemporaryDirectory(prefix="afterword-eval-") as folder:
            trial = await run_trial(stories, system, Path(folder), order=order, seed=seed, on_done=on_done)
        scores = {one.id: score(one, trial.facts[one.id]) for one in scenarios}
        results.append(Result(trial, scores, total(scores.values())))
    return Evaluation(scenarios, results, order, seed, recording)
