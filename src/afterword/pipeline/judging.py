"""What comes before the judge: verdicts are kept by pair and reused for ever, and one call takes so many pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlmodel import Session

from afterword import telemetry
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Usage
from afterword.extractors.judge import Judge, Pair, judged_at_once
from afterword.extractors.slot_relation import RELATION_VERSION, is_cleared
from afterword.facts.assertions import Relation, Verdict
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.timeline import erased_ids
from afterword.pipeline import session_telemetry
from afterword.pipeline.errors import BudgetReached
from afterword.store import runs
from afterword.store.database.engine import Store
from afterword.telemetry import Count, Stage, count


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts on the pairs that were asked for, and how many pairs are left for consolidation."""

    verdicts: tuple[Verdict, ...]
    unjudged: int


class Docket:
    """The pairs of one scope that await a judge. `usage` is what its calls have cost so far, those
    that failed included."""

    def __init__(self, store: Store, scope: Scope, judge: Judge) -> None:
        self._store, self._scope, self._judge = store, scope, judge
        self._given: dict[tuple[str, str], Verdict] = {}
        self.usage = Usage()

    async def judge(self, pairs: Sequence[Pair], *, hidden: frozenset[str], calls: int = 1) -> Judged:
        """Return the verdicts on these pairs: the kept ones, and those of at most `calls` calls for the rest (a judge
        that costs nothing judges all); where a budget is reached, of fewer.

        What is `hidden` (somebody has asked for it to be gone) is in no prompt; code alone may compare it. Raises an
        `ExtractionError` where the judge gave no answer.
        """
        if not pairs:
            return Judged((), 0)
        kept = await self._store.read(lambda db: runs.read_verdicts(db, self._scope, pairs, self._judge.version))
        pairs, open_pairs = self._open_pairs(pairs, kept, hidden)
        size = self._judge.pairs_a_call or max(len(open_pairs), 1)
        batches = [open_pairs[start : start + size] for start in range(0, len(open_pairs), size)]
        asked = len(batches) if self._judge.pairs_a_call is None else calls
        for number, batch in enumerate(batches[:asked]):
            try:
                with telemetry.stage(Stage.JUDGE, pairs=len(batch)):
                    judged, cost = await self._judge.judge(batch)
            except BudgetReached:
                # What was extracted and judged so far is paid for; the rest is left to consolidation.
                asked = number
                break
            except ExtractionError as error:
                self.usage += error.usage
                raise
            self._take(judged)
            self.usage += cost
        return Judged(self._verdicts(pairs), sum(map(len, batches[asked:])))

    def judge_at_once(self, db: Session, pairs: Sequence[Pair], *, hidden: frozenset[str]) -> Judged:
        """Return the verdicts on these pairs that need no call, inside a transaction; the rest is left to
        consolidation."""
        kept = runs.read_verdicts(db, self._scope, pairs, self._judge.version) if pairs else {}
        pairs, open_pairs = self._open_pairs(pairs, kept, hidden)
        if self._judge.pairs_a_call is None and open_pairs:
            self._take(judged_at_once(self._judge, open_pairs)[0])
            open_pairs = []
        return Judged(self._verdicts(pairs), len(open_pairs))

    def _open_pairs(
        self, pairs: Sequence[Pair], kept: Mapping[tuple[str, str], Verdict], hidden: frozenset[str]
    ) -> tuple[Sequence[Pair], list[Pair]]:
        """Return the pairs that may be judged, and those of them that still must be."""
        self._given |= kept
        self._given |= {_ids(pair): _cleared(pair) for pair in pairs if is_cleared(*pair)}
        if self._judge.pairs_a_call is not None:
            pairs = [pair for pair in pairs if not hidden & set(_ids(pair))]
        open_pairs = [pair for pair in pairs if _ids(pair) not in self._given]
        count(Count.CACHE, len(pairs) - len(open_pairs), cache="verdict", hit=True)
        count(Count.CACHE, len(open_pairs), cache="verdict", hit=False)
        return pairs, open_pairs

    def _take(self, judged: Sequence[Verdict]) -> None:
        verdicts = [replace(verdict, reason=self._store.privacy.mask_text(verdict.reason)) for verdict in judged]
        self._given |= {(verdict.earlier_id, verdict.later_id): verdict for verdict in verdicts}
        session_telemetry.judged(verdicts)

    def _verdicts(self, pairs: Sequence[Pair]) -> tuple[Verdict, ...]:
        wanted = [_ids(pair) for pair in pairs]
        return tuple(self._given[ids] for ids in wanted if ids in self._given)


def _cleared(pair: Pair) -> Verdict:
    return Verdict(pair[0].id, pair[1].id, Relation.RETRACTS, "everything was taken back", RELATION_VERSION)


def gone(known: Knowledge, pairs: Sequence[Pair]) -> frozenset[str]:
    """Return the ids of what somebody has asked to be gone, as far as these pairs are concerned."""
    ids = {end for pair in pairs for end in _ids(pair)}
    return erased_ids(*known.excerpt(known.connected_ids(ids)))


def _ids(pair: Pair) -> tuple[str, str]:
    return pair[0].id, pair[1].id
