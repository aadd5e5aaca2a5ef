"""Counters, spans and log records about sessions, and windows: numbers and fixed words, never user text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from afterword import telemetry
from afterword.errors import AfterwordError
from afterword.pipeline.errors import BudgetReached
from afterword.privacy.policy import OFF_THE_RECORD
from afterword.telemetry import Count, count, note

if TYPE_CHECKING:
    from afterword.pipeline.session import SessionOutcome

logger = telemetry.logs(__name__)


def outcome_name(outcome: SessionOutcome) -> str:
    """Return in one word how the processing of a session ended."""
    if outcome.run_id is None and outcome.transcript.layout == OFF_THE_RECORD:
        return OFF_THE_RECORD
    if outcome.run_id is None:
        return "unchanged" if outcome.turns else "empty"
    if outcome.held:
        return "held"
    return "done" if outcome.applied else "proposed"


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
        logger.info("session failed (%s)", type(error).__name__)
        raise


def record_outcome(outcome: SessionOutcome) -> None:
    """Count a session that was processed, and note its result on the span."""
    name, usage = outcome_name(outcome), outcome.usage
    note(result=name, run_id=outcome.run_id, turns=outcome.turns, unjudged=outcome.unjudged, splits=outcome.splits)
    note(calls=usage.calls, input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens)
    count(Count.SESSIONS, result=name)
    logger.info("session %s", name)
