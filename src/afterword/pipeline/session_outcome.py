"""The result of processing a session, and its recording in metrics, spans and logs, without any text of a user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from afterword.errors import AfterwordError
from afterword.extractors.extractor import Usage
from afterword.facts.removals import held_reason
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript
from afterword.pipeline.errors import BudgetReached
from afterword.pipeline.resolution import Changes
from afterword.privacy.policy import OFF_THE_RECORD
from afterword.store.forgetting.pauses import PAUSED
from afterword.telemetry import Count, count, logs, note, scope_mark

_log = logs(__name__)
NO_PERSON, MAY_BE_PERSON = "no human recognised", "may be a person's"
"""What a reading counts as skipped if nobody was taken for a person, and for turns of an unknown speaker."""
_NAME_PEOPLE = (
    "no speaker was taken for a person, so nothing was learned: "
    "name the people with `humans` in `record`, in `record_session`, in `process` or in a manifest"
)
_LEFT_OUT = {OFF_THE_RECORD: OFF_THE_RECORD, PAUSED: "paused"}
"""The result of a session of which nothing is stored, by the reason."""


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """The result of processing a session. `run_id` is None if there was nothing new to do.

    A `held` run waits for a person's approval, because of the scope's policy or for the `held_reason`. `unjudged`
    counts the pairs left to consolidation, `splits` the windows that were read in halves, and `turns` the turns of the
    transcript.
    """

    scope: Scope
    session_id: str
    run_id: int | None
    transcript: Transcript
    owners: tuple[str, ...]
    applied: bool = False
    held: bool = False
    unjudged: int = 0
    splits: int = 0
    usage: Usage = field(default_factory=Usage)
    rejected: Mapping[str, int] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    turns: int = 0

    @property
    def advice(self) -> str | None:
        """What to do if nothing was learned from a speaker who may be a person, since nobody was named; else None."""
        return _NAME_PEOPLE if {NO_PERSON, MAY_BE_PERSON} <= self.transcript.skipped.keys() else None

    @property
    def held_reason(self) -> str | None:
        """Why the run removes too much to be applied without a person; None if it is not held, or only by policy."""
        return held_reason(self.changes.unnamed.counts_if_waiting()) if self.held else None

    def brief(self) -> SessionOutcome:
        """Return the outcome without the turns of the transcript; their number stays."""
        return replace(self, transcript=replace(self.transcript, turns=()))

    @property
    def result_name(self) -> str:
        """How the processing of the session ended, in one word such as "done", "held" or "unchanged"."""
        if self.run_id is None and self.transcript.layout in _LEFT_OUT:
            return _LEFT_OUT[self.transcript.layout]
        if self.run_id is None:
            return "unchanged" if self.turns else "empty"
        if self.held:
            return "held"
        return "done" if self.applied else "proposed"


def skipped_outcome(scope: Scope, session_id: str, reason: str) -> SessionOutcome:
    """Return the outcome of a session of which nothing is stored, for this reason."""
    return SessionOutcome(scope, session_id, None, Transcript((), layout=reason, skipped={reason: 1}), ())


@contextmanager
def counting_failures() -> Iterator[None]:
    """Count a session that fails with an error of afterword, or that is left out because of a budget."""
    try:
        yield
    except BudgetReached:
        count(Count.SESSIONS, result="left")
        raise
    except AfterwordError as error:
        count(Count.SESSIONS, result="failed")
        _log.info("session failed (%s)", type(error).__name__)
        raise


def report_outcome(outcome: SessionOutcome, *, is_first: bool) -> None:
    """Count a session that was processed, and note its result on the span.

    If the session `is_first` read now, log what to do if nothing was learned because nobody was taken for a person.
    """
    name, usage = outcome.result_name, outcome.usage
    note(result=name, run_id=outcome.run_id, turns=outcome.turns, unjudged=outcome.unjudged, splits=outcome.splits)
    note(calls=usage.calls, input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens)
    count(Count.SESSIONS, result=name)
    _log.info("session %s", name)
    if is_first and outcome.advice:
        _log.warning("session %s of %s: %s", outcome.session_id, scope_mark(outcome.scope), outcome.advice)
