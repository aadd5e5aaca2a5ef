"""The interface of a judge, which says how a later-said assertion relates to an earlier-said one."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from afterword.extractors.extractor import Usage
from afterword.facts.assertions import Assertion, Verdict

Pair = tuple[Assertion, Assertion]
"""(earlier-said, later-said)."""

OtherNames = Mapping[str, Sequence[str]]
"""The other names of subjects, by the folded name."""


class Judge(Protocol):
    """Relates pairs of assertions. It decides nothing else, never sees ids and never deletes."""

    @property
    def version(self) -> str:
        """Identifies what its verdicts depend on besides the pair: judge, model and prompt version."""

    @property
    def pairs_a_call(self) -> int | None:
        """The most pairs in one call, or None if calls cost nothing."""

    def judge(self, pairs: Sequence[Pair]) -> Coroutine[Any, Any, tuple[list[Verdict], Usage]]:
        """Return a verdict for each pair that it can decide. The assertions of other pairs both stay valid.

        Raises an `ExtractionError` if there was no answer. A missing answer never counts as "no conflict".
        """


@runtime_checkable
class SelectiveJudge(Judge, Protocol):
    """A judge that may be shown only likely pairs, and that is told the other names of a subject."""

    @property
    def pairs_a_statement(self) -> int | None:
        """The most pairs of a later statement with those of other slots, or None if all required pairs are judged."""

    def judge(
        self, pairs: Sequence[Pair], other_names: OtherNames | None = None
    ) -> Coroutine[Any, Any, tuple[list[Verdict], Usage]]:
        """Return a verdict for each pair. `other_names` holds other names of the subjects."""


def pairs_a_statement(judge: Judge) -> int | None:
    """Return how many pairs of a later statement with those of other slots this judge is shown; None for all."""
    return judge.pairs_a_statement if isinstance(judge, SelectiveJudge) else None


def judged_at_once(judge: Judge, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
    """Return the verdicts of a judge that needs no call (`pairs_a_call` is None), without an event loop.

    Raises RuntimeError if the judge waits for something.
    """
    judging = judge.judge(pairs)
    try:
        judging.send(None)
    except StopIteration as end:
        verdicts: tuple[list[Verdict], Usage] = end.value
        return verdicts
    judging.close()
    raise RuntimeError(f"the judge {judge.version!r} has no `pairs_a_call` and must answer without waiting")
