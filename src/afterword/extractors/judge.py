"""The interface of a judge, which says how an assertion relates to one that was said earlier."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from afterword.extractors.extractor import Usage
from afterword.facts.assertions import Assertion, Verdict

Pair = tuple[Assertion, Assertion]
"""Two assertions: the one that was said earlier, then the one that was said later."""

OtherNames = Mapping[str, Sequence[str]]
"""Other names of a subject, by the folded name that an assertion gives it."""


class Judge(Protocol):
    """Says how the later assertion of a pair relates to the earlier one, for example that it takes its place."""

    @property
    def version(self) -> str:
        """A name of the judge, its model and its prompt. It changes whenever verdicts may change."""

    @property
    def pairs_a_call(self) -> int | None:
        """The most pairs in one call of `judge`. None: any number, and the judge answers at once and without cost."""

    def judge(self, pairs: Sequence[Pair]) -> Coroutine[Any, Any, tuple[list[Verdict], Usage]]:
        """Return a verdict for each pair that the judge can decide, and the usage. In other pairs both assertions hold.

        Raises an `ExtractionError` if there was no answer. A missing answer never counts as "no conflict".
        """


@runtime_checkable
class SelectiveJudge(Judge, Protocol):
    """A judge that need not be shown every pair, and that is told the other names of a subject."""

    @property
    def pairs_a_statement(self) -> int | None:
        """How many earlier statements about another subject or attribute one statement is compared with. None: all."""

    def judge(
        self, pairs: Sequence[Pair], other_names: OtherNames | None = None
    ) -> Coroutine[Any, Any, tuple[list[Verdict], Usage]]:
        """Return a verdict for each pair, and the usage. `other_names` holds other names of the subjects."""


def pairs_a_statement(judge: Judge) -> int | None:
    """Return the limit of a `SelectiveJudge`, or None for a judge that must be shown all required pairs."""
    return judge.pairs_a_statement if isinstance(judge, SelectiveJudge) else None


def judge_without_waiting(judge: Judge, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
    """Return what a judge answers that never waits (`pairs_a_call` is None). No event loop is needed.

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
