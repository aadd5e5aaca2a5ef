"""How a run ends: what is left and why, what it cost, and with which exit code."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from afterword.cli.app import FAILED, INTERRUPTED, OUT_OF_BUDGET
from afterword.cli.output import console
from afterword.cli.spending import told
from afterword.pipeline.batch import Failure, NotDue, NotStarted
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import SessionOutcome

Ended = SessionOutcome | Failure | NotStarted | NotDue


def handed_back(waiting: Sequence[Saved], ended: Sequence[SessionOutcome | Failure], reason: str) -> list[Ended]:
    """Return what became of each session where those at work were given up: they are left as they were."""
    known = {(one.scope, one.session_id): one for one in ended}
    return [known.get((one.scope, one.session_id)) or NotStarted(one.scope, one.session_id, reason) for one in waiting]


def show_waiting(waiting: Sequence[NotDue]) -> None:
    """Print which sessions failed before and were not tried now."""
    out = console()
    for one in waiting:
        out.print(f"waiting: {one.session_id} of {one.scope}: {one.reason}")


def show_end(ended: Sequence[Ended], spending: CostTracker) -> None:
    """Print what the run has cost, and where it was stopped what is left."""
    out = console()
    if ended or spending.spent.calls:
        out.print(f"cost: {told(spending.spent)}")
    left = [one for one in ended if isinstance(one, NotStarted)]
    if left or spending.reached:
        reason = spending.reached or left[0].reason
        out.print(f"stopped: {reason}; {len(left)} sessions left, run it again to go on")


def end(ended: Sequence[Ended], spending: CostTracker) -> None:
    """Exit with the code that says how it ended, where that is not 0."""
    kinds = Counter(type(one) for one in ended)
    if kinds[NotStarted] and not spending.reached:
        sys.exit(INTERRUPTED)
    if spending.reached:
        sys.exit(OUT_OF_BUDGET)
    if kinds[Failure]:
        sys.exit(FAILED)
