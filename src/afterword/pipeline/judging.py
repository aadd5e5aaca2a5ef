"""Judging pairs of statements: stored verdicts are reused, and only the remaining pairs go to the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlmodel import Session

from afterword import telemetry
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Usage
from afterword.extractors.judge import Judge, OtherNames, Pair, SelectiveJudge, judge_without_waiting, pairs_a_statement
from afterword.extractors.slot_relation import RELATION_VERSION, is_subject_cleared
from afterword.facts.assertions import Relation, SpeechAct, Verdict
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.validity.fact_history import facts_at
from afterword.facts.validity.wording import remainder_fault
from afterword.facts.words import folded
from afterword.pipeline.errors import BudgetReached
from afterword.privacy.normalisation import storable_text
from afterword.store.database.engine import Store
from afterword.store.proposals import read_verdicts
from afterword.telemetry import Count, Stage, count


@dataclass(frozen=True, slots=True)
class PairsToJudge:
    """Pairs of statements. `verdicts` holds those that are known already, by the ids of both statements."""

    pairs: Sequence[Pair]
    verdicts: Mapping[tuple[str, str], Verdict]
    current_ids: frozenset[str] = frozenset()
    """Ids of statements that hold. If one call cannot take all pairs, pairs with these statements are judged first."""
    other_names: OtherNames = field(default_factory=dict[str, Sequence[str]])
    """For each subject of the pairs, the other names of the same person or thing."""


@dataclass(frozen=True, slots=True)
class JudgingResult:
    """The verdicts on the pairs, and how many pairs are left to consolidation."""

    verdicts: tuple[Verdict, ...]
    unjudged: int


class PairJudging:
    """Judges pairs of one scope, and caches the verdicts, so that a repeated try asks for none of them again.

    `usage` is the cost of all calls so far, failed ones included. `pairs_a_statement` says with how many earlier
    statements of other slots the judge compares each statement, None for all.
    """

    def __init__(self, store: Store, scope: Scope, judge: Judge) -> None:
        self._privacy, self._scope, self._judge = store.privacy, scope, judge
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self.usage: Usage = Usage()
        self.pairs_a_statement: int | None = pairs_a_statement(judge)

    def prepare(self, transaction: Session, known: Knowledge, pairs: Sequence[Pair]) -> PairsToJudge:
        """Return the pairs that may be judged, with the stored verdicts on them.

        Statements that somebody asked to erase appear in no prompt: only a judge that makes no calls may compare them.
        """
        if pairs and self._judge.pairs_a_call is not None:
            ids = {id_ for pair in pairs for id_ in pair_ids(pair)}
            erased = known.judged_pairs(ids).hidden_ids()
            pairs = [pair for pair in pairs if not erased & set(pair_ids(pair))]
        stored = read_verdicts(transaction, self._scope, pairs, self._judge.version)
        cleared = {
            pair_ids(pair): Verdict(*pair_ids(pair), Relation.RETRACTS, "everything was taken back", RELATION_VERSION)
            for pair in pairs
            if is_subject_cleared(*pair)
        }
        most = self._judge.pairs_a_call
        current_ids = _current_ids(known, pairs) if most is not None and len(pairs) > most else frozenset[str]()
        other_names = _other_names(known, pairs) if isinstance(self._judge, SelectiveJudge) else {}
        return PairsToJudge(pairs, stored | cleared, current_ids, other_names)

    async def judge(self, to_judge: PairsToJudge, *, most_calls: int = 1) -> JudgingResult:
        """Return the verdicts on these pairs. At most `most_calls` calls are made, fewer if a budget is reached.

        A judge that makes no calls judges every pair. Raises an `ExtractionError` if the judge gave no answer.
        """
        open_pairs = self._open_pairs(to_judge)
        size = self._judge.pairs_a_call or max(len(open_pairs), 1)
        batches = _batches(open_pairs, size, to_judge.current_ids)
        calls = len(batches) if self._judge.pairs_a_call is None else most_calls
        for number, batch in enumerate(batches[:calls]):
            try:
                await self._judge_batch(batch, to_judge.other_names)
            except BudgetReached:
                # What was extracted and judged so far is paid for, so it is stored.
                calls = number
                break
        return self._result(to_judge, sum(map(len, batches[calls:])))

    async def _judge_batch(self, batch: Sequence[Pair], other_names: OtherNames) -> None:
        try:
            with telemetry.stage(Stage.JUDGE, pairs=len(batch)):
                if isinstance(self._judge, SelectiveJudge):
                    verdicts, usage = await self._judge.judge(batch, other_names)
                else:
                    verdicts, usage = await self._judge.judge(batch)
        except ExtractionError as error:
            self.usage += error.usage
            raise
        self._add_verdicts(verdicts, batch)
        self.usage += usage

    def judge_without_calls(self, to_judge: PairsToJudge) -> JudgingResult:
        """Return the verdicts on these pairs that need no call. For use inside a transaction."""
        open_pairs = self._open_pairs(to_judge)
        if self._judge.pairs_a_call is None and open_pairs:
            self._add_verdicts(judge_without_waiting(self._judge, open_pairs)[0], open_pairs)
            open_pairs = []
        return self._result(to_judge, len(open_pairs))

    def _open_pairs(self, to_judge: PairsToJudge) -> list[Pair]:
        self._verdicts |= to_judge.verdicts
        open_pairs = [pair for pair in to_judge.pairs if pair_ids(pair) not in self._verdicts]
        count(Count.CACHE, len(to_judge.pairs) - len(open_pairs), cache="verdict", hit=True)
        count(Count.CACHE, len(open_pairs), cache="verdict", hit=False)
        return open_pairs

    def _add_verdicts(self, judged: Sequence[Verdict], pairs: Sequence[Pair]) -> None:
        by_ids = {pair_ids(pair): pair for pair in pairs}
        masked = {
            reason: self._privacy.mask_text(storable_text(reason)) for reason in {verdict.reason for verdict in judged}
        }
        verdicts = [
            self._with_checked_remainder(replace(verdict, reason=masked[verdict.reason]), by_ids) for verdict in judged
        ]
        self._verdicts |= {verdict.pair: verdict for verdict in verdicts}
        for verdict in verdicts:
            count(Count.VERDICTS, relation=str(verdict.relation))

    def _with_checked_remainder(self, verdict: Verdict, by_ids: Mapping[tuple[str, str], Pair]) -> Verdict:
        """Return the verdict. Its remainder is masked, or dropped if the earlier statement cannot still say that."""
        if verdict.remainder is None:
            return verdict
        pair, remainder = by_ids.get(verdict.pair), storable_text(verdict.remainder)
        fault = remainder_fault(remainder, *pair) if pair else "it is of no such pair"
        if fault is not None:
            count(Count.REMAINDERS_IGNORED, reason=fault)
            return replace(verdict, remainder=None)
        return replace(verdict, remainder=self._privacy.mask_text(remainder))

    def _result(self, to_judge: PairsToJudge, unjudged: int) -> JudgingResult:
        ids = map(pair_ids, to_judge.pairs)
        return JudgingResult(tuple(self._verdicts[pair] for pair in ids if pair in self._verdicts), unjudged)


def pair_ids(pair: Pair) -> tuple[str, str]:
    """Return the ids of the two statements."""
    return pair[0].id, pair[1].id


def _current_ids(known: Knowledge, pairs: Sequence[Pair]) -> frozenset[str]:
    """Return the ids of the assertions of facts that hold when the latest assertion of these pairs is made."""
    ids = {id_ for pair in pairs for id_ in pair_ids(pair)}
    facts = facts_at(known.histories(ids), max(assertion.said_at for pair in pairs for assertion in pair))
    return frozenset(id_ for fact in facts if fact.is_served for id_ in fact.assertion_ids)


def _other_names(known: Knowledge, pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Return, for each subject of these pairs, its other names, as they were last written.

    A name that occurs only in statements which somebody asked to erase, or in such requests, is left out.
    """
    subjects = {folded(assertion.subject) for pair in pairs for assertion in pair}
    labels_by_subject = {subject: labels for subject in subjects if (labels := known.names.other_labels(subject))}
    ids_by_label = {
        label: known.ids_by_subject.get(label, ()) for labels in labels_by_subject.values() for label in labels
    }
    ids = {id_ for label_ids in ids_by_label.values() for id_ in label_ids}
    erased = known.judged_pairs(ids).hidden_ids() if ids else frozenset[str]()
    names: dict[str, str] = {}
    for label, label_ids in ids_by_label.items():
        said = [known.by_id[id_] for id_ in label_ids if id_ not in erased]
        visible = [assertion for assertion in said if assertion.act is not SpeechAct.ERASE]
        if visible:
            names[label] = max(visible, key=lambda assertion: assertion.order).subject
        elif not label_ids:
            names[label] = label  # only a renaming has this name
    visible_names = {
        subject: [names[label] for label in labels if label in names] for subject, labels in labels_by_subject.items()
    }
    return {subject: others for subject, others in visible_names.items() if others}


def _batches(pairs: Sequence[Pair], size: int, current_ids: frozenset[str]) -> list[list[Pair]]:
    """Return the pairs of each call, `size` or fewer. Pairs within one slot that have a current statement come first.

    Pairs for which no call is left wait for consolidation, and the outdated value of such a slot would hold until then.
    Within a call the pairs stay in their order.
    """

    def may_replace(pair: Pair) -> bool:
        return pair[0].slot == pair[1].slot and not current_ids.isdisjoint(pair_ids(pair))

    rank = {pair_ids(pair): number for number, pair in enumerate(pairs)}
    ordered = sorted(pairs, key=may_replace, reverse=True)
    batches = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    return [sorted(batch, key=lambda pair: rank[pair_ids(pair)]) for batch in batches]
