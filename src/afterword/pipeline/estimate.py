"""Estimating what processing sessions would cost, without asking a model and without writing to the store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from afterword.errors import StoreError
from afterword.extractors.errors import ReadError
from afterword.extractors.extractor import Extractor, Usage
from afterword.extractors.judge import Judge
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.facts.scopes import Scope
from afterword.pipeline.errors import PipelineError
from afterword.pipeline.intake import Saved, prepare_session
from afterword.recall.tokens import tokens_by_byte_size
from afterword.store.database.engine import Store

NEW, GROWN, UNCHANGED, UNREADABLE = "new", "grown", "unchanged", "unreadable"

LEAST_PROMPT = 0.65
"""The smallest likely share of its estimated tokens that a prompt has. The estimate assumes three bytes per token, and
English text has at least four."""
ANSWER = (0.2, 2.0)
"""The least and the greatest length of an extractor's answer, as a share of its input. In recorded sessions with many
facts it was 0.7 to 2.1."""
JUDGING_PROMPT, JUDGING_ANSWER = 4_500, 1_800
"""The tokens of a recorded request to the judge with 40 pairs, and of the answer."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of some sessions, from `least` to `most`, and the number of sessions by state (new, grown, ...).

    Requests to repair candidates, which about one session in ten needs, are not included.
    """

    sessions: dict[str, int] = field(default_factory=dict)
    windows: int = 0
    least: Usage = field(default_factory=Usage)
    most: Usage = field(default_factory=Usage)

    def __add__(self, other: Estimate) -> Estimate:
        states = {*self.sessions, *other.sessions}
        return Estimate(
            {state: self.sessions.get(state, 0) + other.sessions.get(state, 0) for state in sorted(states)},
            self.windows + other.windows,
            self.least + other.least,
            self.most + other.most,
        )


async def estimate_costs_by_scope(
    store: Store, saved_sessions: Iterable[Saved], *, extractor: Extractor, judge: Judge
) -> dict[Scope, Estimate]:
    """Return the estimated cost of processing these sessions, by scope. Nothing is written."""
    by_scope: dict[Scope, Estimate] = {}
    for saved in saved_sessions:
        of_session = await _session_estimate(store, saved, extractor, judge)
        by_scope[saved.scope] = by_scope.get(saved.scope, Estimate()) + of_session
    return by_scope


async def _session_estimate(store: Store, saved: Saved, extractor: Extractor, judge: Judge) -> Estimate:
    try:
        prepared = await prepare_session(store, saved, extractor.version)
    except (ReadError, PipelineError, StoreError):
        return Estimate({UNREADABLE: 1})
    stored = prepared.stored
    if not prepared.keys or stored.last_keys == list(prepared.keys):
        return Estimate({UNCHANGED: 1})
    fresh = [window for window, key in zip(prepared.windows, prepared.keys, strict=True) if key not in stored.readings]
    least, most = Usage(), Usage()
    if isinstance(extractor, ModelExtractor):
        prompts = sum(extractor.planned_request(window).prompt_tokens for window in fresh)
        words = sum(tokens_by_byte_size(turn.text) for window in fresh for turn in window.turns)
        least = Usage(len(fresh), int(prompts * LEAST_PROMPT), int(words * ANSWER[0]))
        most = Usage(len(fresh), prompts, int(words * ANSWER[1]))
    if isinstance(judge, ModelJudge):
        most += Usage(1, JUDGING_PROMPT, JUDGING_ANSWER)
    return Estimate({NEW if stored.last_keys is None else GROWN: 1}, len(fresh), least, most)
