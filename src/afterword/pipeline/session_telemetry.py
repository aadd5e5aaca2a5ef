"""What became of sessions, windows and pairs, as counters, spans and log records tell it: numbers and fixed words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from afterword import telemetry
from afterword.errors import AfterwordError
from afterword.facts.assertions import Verdict
from afterword.pipeline.errors import BudgetReached
from afterword.privacy.policy import OFF_THE_RECORD
from afterword.telemetry import Count, Measure, count, note

if TYPE_CHECKING:
    from afterword.extractors.grounding import Grounding
    from afterword.pipeline.intake import Kept
    from afterword.pipeline.session import SessionOutcome

logger = telemetry.logs(__name__)


def result(one: SessionOutcome) -> str:
    """Return in one word what became of a session."""
    if one.run_id is None and one.transcript.layout == OFF_THE_RECORD:
        return OFF_THE_RECORD
    if one.run_id is None:
        return "unchanged" if one.turns else "empty"
    if one.held:
        return "held"
    return "done" if one.applied else "proposed"


@contextmanager
def failing() -> Iterator[None]:
    """Count a session that fails inside by an error of ours, or that a budget leaves."""
    try:
        yield
    except BudgetReached:
        count(Count.SESSIONS, result="left")
        raise
    except AfterwordError as error:
        count(Count.SESSIONS, result="failed")
        logger.info("session failed (%s)", type(error).__name__)
        raise


def ended(one: SessionOutcome) -> None:
    """Tell of a session that came to its end."""
    became, usage = result(one), one.usage
    note(result=became, run_id=one.run_id, turns=one.turns, unjudged=one.unjudged, splits=one.splits)
    note(calls=usage.calls, input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens)
    count(Count.SESSIONS, result=became)
    logger.info("session %s", became)


def waited(kept: Kept, now: datetime) -> None:
    """Tell how long a recorded session has waited to be read; nothing of one that was done before."""
    if kept.row is not None and kept.row.progress != "done" and kept.state_saved_at is not None:
        telemetry.measure(Measure.QUEUE_AGE, max(0.0, (now - kept.state_saved_at).total_seconds()))


def grounded(found: Grounding) -> None:
    """Count what a window gave, and what was refused, by reason."""
    count(Count.ASSERTIONS, len(found.assertions))
    for one in found.rejections:
        count(Count.REFUSED, reason=str(one.reason))


def judged(verdicts: Sequence[Verdict]) -> None:
    """Count verdicts by relation."""
    for one in verdicts:
        count(Count.VERDICTS, relation=str(one.relation))
