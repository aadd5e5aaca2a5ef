"""Which assertions retire or repeat others, by the verdicts on judged pairs and their consequences. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache, cached_property
from typing import TypeVar

from afterword.facts.assertions import PERSON, RETIRING, Assertion, EvidenceKind, Extent, Relation, SpeechAct, Verdict
from afterword.facts.subjects import SubjectNames, Subjects
from afterword.facts.validity.alternations import Alternations, IdPair, next_changes
from afterword.facts.validity.periods import repeats_days, takes_some_days
from afterword.facts.validity.retirement_guard import RefusedRetirement, is_about_less, refusal_reason
from afterword.facts.validity.wording import lacks_ended_part, remainder_fault
from afterword.facts.words import folded

T = TypeVar("T")
_STRENGTH = {Relation.NARROWS: 0, Relation.CHANGES: 1, Relation.RETRACTS: 2, Relation.CORRECTS: 3}


def deciding_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that counts among several on one pair."""
    return max(
        verdicts,
        key=lambda verdict: (
            *(verdict.rank, verdict.relation, verdict.reason, verdict.joins_subjects, verdict.parts_subjects),
            *(verdict.extent or "", verdict.remainder or ""),
        ),
    )


def deciding_verdicts(verdicts: Iterable[Verdict]) -> dict[IdPair, Verdict]:
    """Return the verdict that counts for each pair."""
    decided: dict[IdPair, Verdict] = {}
    for verdict in verdicts:
        other = decided.get(verdict.pair)
        decided[verdict.pair] = deciding_verdict((other, verdict)) if other else verdict
    return decided


class JudgedPairs:
    """Which assertions retire, repeat, continue or limit others, by the verdicts on pairs of them.

    Verdicts on assertions that are not given are ignored.

    `ordered` holds the assertions in order of saying, `position` the place of each in this order. `roots` maps each
    assertion to the first assertion that it repeats (its root), and `members` maps each root to itself and all
    assertions that repeat it. `retirements` maps each assertion to the later ones that retire it, with their relation.
    Changes without an effect are left out if there may be many (see `facts.validity.alternations`). `contests` holds
    the pairs of roots between which a retirement was refused. `broader` holds pairs (restatement, narrower statement):
    the restatement repeats a statement that the other one had narrowed, or limited for some days; the value is this
    relation. `extents` and `remainders` hold the extent and the remainder of a pair, if a judge gave them and code
    accepts them. `continued_by` maps an assertion to the later ones that continue it, which have the same root.
    `exceptions` maps a root to the roots of its exceptions.

    Raises ValueError if a verdict's pair is not in order of saying.
    """

    def __init__(
        self, assertions: Iterable[Assertion], verdicts: Iterable[Verdict], names: SubjectNames | None = None
    ) -> None:
        self.by_id: dict[str, Assertion] = {assertion.id: assertion for assertion in assertions}
        self.ordered: list[Assertion] = sorted(self.by_id.values(), key=lambda assertion: assertion.order)
        self.position: dict[str, int] = {assertion.id: index for index, assertion in enumerate(self.ordered)}
        self.decided: dict[IdPair, Verdict] = deciding_verdicts(
            verdict for verdict in verdicts if verdict.earlier_id in self.position and verdict.later_id in self.position
        )
        for earlier, later in self.decided:
            if self.position[earlier] >= self.position[later]:
                raise ValueError(f"{earlier} was not said before {later}")
        self.relations: dict[IdPair, Relation] = {pair: verdict.relation for pair, verdict in self.decided.items()}
        self.names: SubjectNames | None = names
        self.subjects: Subjects = Subjects(self.by_id, self.decided.values(), names)
        self.continued_by: dict[str, list[str]] = defaultdict(list)
        self.roots: dict[str, str] = self._roots()
        self.members: dict[str, list[Assertion]] = defaultdict(list)
        for assertion in self.ordered:
            if assertion.act is SpeechAct.STATE:
                self.members[self.roots[assertion.id]].append(assertion)
        for pair in self._outer_restatements():
            del self.relations[pair]
        self._settled = {self._roots_pair(*pair) for pair, verdict in self.decided.items() if verdict.judge == PERSON}
        # Where a person has decided between two facts, no other judge's verdict that one retires the other counts.
        for pair, judged in self.decided.items():
            if judged.judge != PERSON and judged.relation in RETIRING and self._roots_pair(*pair) in self._settled:
                self.relations.pop(pair, None)
        self.refused: list[RefusedRetirement] = []
        self.contests: set[frozenset[str]] = set()
        self.broader: dict[IdPair, Relation] = {}
        self.extents: dict[IdPair, Extent] = {}
        self.remainders: dict[IdPair, str] = {}
        self.exceptions: dict[str, set[str]] = self._exceptions()
        for pair in [pair for pair in self.relations if self._repeats_general(*pair)]:
            del self.relations[pair]
        self._first_remainders: dict[tuple[str, str, Relation], tuple[int, str]] = self._remainders_by_fact()
        self.retirements: dict[str, list[tuple[str, Relation]]] = {assertion.id: [] for assertion in self.ordered}
        for (earlier, later), relation in self._retiring_relations().items():
            self.retirements[earlier].append((later, relation))
        self._pass_exceptions_on()

    @cached_property
    def _alternations(self) -> Alternations:
        return Alternations(self.roots, self.members, self.by_id, self.decided)

    def erased(self) -> frozenset[str]:
        """Return the ids of the statements that a request to erase hides."""
        return frozenset(
            earlier
            for earlier, retirements in self.retirements.items()
            for later, relation in retirements
            if relation is Relation.RETRACTS and self.by_id[later].act is SpeechAct.ERASE
        )

    def is_edit(self, earlier: str, later: str) -> bool:
        """Return whether the later statement is a person's edit of the earlier one."""
        said, verdict = self.by_id[later], self.decided.get((earlier, later))
        is_entered = any(cited.kind is EvidenceKind.PERSON for cited in said.evidence)
        return is_entered and said.act is SpeechAct.STATE and verdict is not None and verdict.judge == PERSON

    def _roots_pair(self, earlier: str, later: str) -> frozenset[str]:
        return frozenset({self.roots[earlier], self.roots[later]})

    def _roots(self) -> dict[str, str]:
        """Return the root of each assertion. One that repeats or continues several gets the root of the latest."""
        repeated: dict[str, str] = {}
        for (earlier, later), relation in self.relations.items():
            if not self._are_statements(earlier, later):
                continue
            if relation is Relation.CONTINUES and self._may_continue(earlier, later):
                self.continued_by[earlier].append(later)
            if relation is Relation.SAME or later in self.continued_by.get(earlier, ()):
                repeated[later] = max(earlier, repeated.get(later, earlier), key=self.position.__getitem__)
        roots: dict[str, str] = {}
        for assertion in self.ordered:
            roots[assertion.id] = roots[repeated[assertion.id]] if assertion.id in repeated else assertion.id
        return roots

    def _are_statements(self, earlier: str, later: str) -> bool:
        return self.by_id[earlier].act is SpeechAct.STATE is self.by_id[later].act

    def _may_continue(self, earlier: str, later: str) -> bool:
        """Whether code allows `later` to set the end of `earlier`. If not, the verdict has no effect."""
        old, new = self.by_id[earlier], self.by_id[later]
        if self.decided[earlier, later].judge == PERSON:
            return True
        if is_about_less(old, new):
            return False
        return refusal_reason(old, new, is_same_subject=self.subjects.are_same(old, new)) is None

    def _exceptions(self) -> dict[str, set[str]]:
        exceptions: dict[str, set[str]] = defaultdict(set)
        for (earlier, later), relation in self.relations.items():
            is_between_facts = self._are_statements(earlier, later) and self.roots[earlier] != self.roots[later]
            if relation is Relation.EXCEPTS and is_between_facts:
                exceptions[self.roots[earlier]].add(self.roots[later])
        return exceptions

    def _repeats_general(self, exception: str, repetition: str) -> bool:
        """Whether `repetition` only repeats a general statement that `exception` limits.

        Then it does not end the exception, even if a judge takes it for a change. A statement that ends the exception
        names other days, or says that something has changed. The answer must not depend on the session, since only the
        nearest restatement is judged.
        """
        said, verdict = self.by_id[exception], self.decided[exception, repetition]
        is_case = self.roots[exception] in self.exceptions.get(self.roots[repetition], ())
        is_exception = is_case or said.valid_to is not None
        if not is_exception or verdict.relation is not Relation.CHANGES or verdict.judge == PERSON:
            return False
        return any(
            repeats_days(self.by_id[repetition], general) and (is_case or self._changes_some_days_only(general, said))
            for general in self.members.get(self.roots[repetition], ())
            if self.position[general.id] < self.position[exception]
        )

    def _changes_some_days_only(self, general: Assertion, exception: Assertion) -> bool:
        """Whether `exception` was judged to change a general statement for some days only."""
        is_change = self.relations.get((general.id, exception.id)) is Relation.CHANGES
        return is_change and takes_some_days(general, exception, self.decided[general.id, exception.id].extent)

    def _outer_restatements(self) -> list[IdPair]:
        """Return the pairs of repeated statements that do not count, since a pair closer together was judged too.

        If two statements are repeated, it depends on the order of arrival which pairs of them are judged. The pair that
        lies closest together always is, and its verdict holds for all of them.
        """
        pairs_by_content: dict[tuple[object, ...], list[tuple[int, int, IdPair]]] = defaultdict(list)
        content_of = cache(lambda id_: _content(self.by_id[id_]))
        for (earlier, later), relation in self.relations.items():
            roots = self.roots[earlier], self.roots[later]
            is_repeated = roots[0] != roots[1] and any(len(self.members.get(root, ())) > 1 for root in roots)
            if is_repeated and relation in RETIRING and self.decided[earlier, later].judge != PERSON:
                content = *roots, content_of(earlier), content_of(later)
                places = -self.position[earlier], self.position[later]
                pairs_by_content[content].append((*places, (earlier, later)))
        outer = []
        for pairs in pairs_by_content.values():
            innermost_end = len(self.ordered)
            for _, end, pair in sorted(pairs):
                if innermost_end <= end:
                    outer.append(pair)
                innermost_end = min(innermost_end, end)
        return outer

    def _retiring_relations(self) -> dict[IdPair, Relation]:
        """Return every pair in which the later assertion retires the earlier one, without refused retirements."""
        relations: dict[IdPair, Relation] = {}
        expanded: set[tuple[object, ...]] = set()
        for (earlier, later), relation in self.relations.items():
            if relation in RETIRING:
                # A second verdict with the same meaning between the same facts adds nothing.
                verdict, is_slip = self.decided[earlier, later], self._is_slip(earlier, later)
                words = verdict.extent, verdict.remainder
                meaning = self.roots[earlier], self.roots[later], relation, words, is_slip
                is_new = meaning not in expanded
                expanded.add(meaning)
                inherited_pairs = self._inherited(earlier, later, relation) if is_new else ()
                for pair, inherited in (((earlier, later), relation), *inherited_pairs):
                    if pair == (earlier, later) or pair not in self.relations:
                        relations[pair] = max(relations.get(pair, inherited), inherited, key=_STRENGTH.__getitem__)
                        self._record_extent(pair, (earlier, later))
                        self._record_remainder(pair, (earlier, later))
        self.broader = {pair: relation for pair, relation in self.broader.items() if self._is_allowed(*pair)}
        allowed = {pair: relation for pair, relation in relations.items() if self._is_allowed(*pair, relation)}
        return allowed | self._retired_by_corrections(allowed)

    def _retired_by_corrections(self, allowed: dict[IdPair, Relation]) -> dict[IdPair, Relation]:
        """Return the pairs in which a correction retires what the corrected statement had retired before."""
        retired_by: dict[str, set[str]] = defaultdict(set)
        corrections = []
        for (earlier, later), relation in allowed.items():
            if relation is Relation.CORRECTS and self.by_id[later].act is SpeechAct.STATE:
                corrections.append((self.position[earlier], earlier, later))
            if relation is not Relation.RETRACTS:
                retired_by[later].add(earlier)
        inherited: dict[IdPair, Relation] = {}
        for _, wrong, right in sorted(corrections):
            for old in sorted(retired_by[wrong]):
                pair = (old, right)
                is_open = pair not in self.relations and self.roots[old] != self.roots[right]
                if is_open and pair not in allowed and self._is_allowed(*pair):
                    inherited[pair] = Relation.CHANGES
                    _copy_entry(self.extents, (old, wrong), pair)
                    _copy_entry(self.remainders, (old, wrong), pair)
                    retired_by[right].add(old)
        return inherited

    def _pass_exceptions_on(self) -> None:
        """Let a fact that a person has edited keep its exceptions, and stay an exception if it was one."""
        for general in self.ordered:
            for later, _ in self.retirements.get(general.id, ()):
                if self.is_edit(general.id, later):
                    old, new = self.roots[general.id], self.roots[later]
                    self.exceptions[new] |= self.exceptions.get(old, set()) - {new}
                    for root, exceptions in self.exceptions.items():
                        if old in exceptions and root != new:
                            exceptions.add(new)
                    # A change for some days only that was said before the edit still limits the edited statement.
                    self.broader |= {
                        (later, exception): relation
                        for exception, relation in self.retirements[general.id]
                        if relation is Relation.CHANGES
                        and self.position[exception] < self.position[later]
                        and takes_some_days(general, self.by_id[exception], self.extents.get((general.id, exception)))
                    }

    def _record_extent(self, pair: IdPair, judged_pair: IdPair) -> None:
        """Record for `pair` the extent (how much of the earlier statement is replaced) that a judge gave `judged_pair`.

        The statements of `pair` are those of `judged_pair`, or repeat them.
        """
        extent = self.decided[judged_pair].extent
        is_forward = self.roots[pair[0]] == self.roots[judged_pair[0]]
        if extent is not None and is_forward and (pair == judged_pair or pair not in self.relations):
            self.extents[pair] = min(extent, self.extents.get(pair, extent))

    def _record_remainder(self, pair: IdPair, judged_pair: IdPair) -> None:
        """Note the remainder of a pair, the part of the earlier sentence that still holds, if code accepts it."""
        earlier, later = judged_pair
        verdict, is_forward = self.decided[judged_pair], self.roots[pair[0]] == self.roots[earlier]
        if not is_forward or (pair != judged_pair and pair in self.relations):
            return
        remainder = self._accepted_remainder(verdict)
        place, of_fact = self._first_remainders.get((earlier, self.roots[later], verdict.relation), (0, None))
        if remainder is None and verdict.judge != PERSON and place < self.position[later]:
            remainder = of_fact  # a repeated change takes away no more than the change did
        if remainder is not None:
            self.remainders[pair] = min(remainder, self.remainders.get(pair, remainder))

    def _accepted_remainder(self, verdict: Verdict) -> str | None:
        if not verdict.remainder or verdict.relation not in (Relation.CHANGES, Relation.CORRECTS):
            return None
        earlier, later = map(self.by_id.__getitem__, verdict.pair)
        return verdict.remainder if remainder_fault(verdict.remainder, earlier, later) is None else None

    def _remainders_by_fact(self) -> dict[tuple[str, str, Relation], tuple[int, str]]:
        """Return the remainder that the first statement of a later fact leaves of an earlier one, with its position."""
        first: dict[tuple[str, str, Relation], tuple[int, str]] = {}
        for (earlier, later), relation in self.relations.items():
            verdict = self.decided[earlier, later]
            if verdict.judge != PERSON and (remainder := self._accepted_remainder(verdict)) is not None:
                key, entry = (earlier, self.roots[later], relation), (self.position[later], remainder)
                first[key] = min(entry, first.get(key, entry))
        return first

    def _inherited(self, earlier: str, later: str, relation: Relation) -> Iterable[tuple[IdPair, Relation]]:
        """Yield the pairs, with relations, that a verdict implies for the repetitions of its two statements."""
        old = self.members.get(self.roots[earlier]) or [self.by_id[earlier]]
        new = self.members.get(self.roots[later]) or [self.by_id[later]]
        if old is new or len(old) == len(new) == 1:
            yield (earlier, later), relation
            return
        if relation is Relation.CHANGES and self._alternations.only_replace_each_other(
            self.roots[earlier], self.roots[later]
        ):
            yield from ((pair, relation) for pair in next_changes((old, new), self.position, self.relations))
            return
        is_slip = self._is_slip(earlier, later)
        for former in old:
            for latter in new:
                if self.position[former.id] < self.position[latter.id]:
                    is_judged_pair = (former.id, latter.id) == (earlier, later)
                    inherited = Relation.CHANGES if is_slip else relation
                    yield (former.id, latter.id), relation if is_judged_pair else inherited
                else:
                    yield from self._inherited_backwards(former, latter, (earlier, later))

    def _inherited_backwards(
        self, former: Assertion, latter: Assertion, judged_pair: IdPair
    ) -> Iterable[tuple[IdPair, Relation]]:
        """Yield what a verdict implies if its earlier statement is repeated (`former`) after its later one (`latter`).

        The repetition usually changes the fact back. It does not if it repeats only the remainder of the sentence, or
        if it repeats a general statement that the later one limited for some days.
        """
        relation = self.relations[judged_pair]
        general, extent = self.by_id[judged_pair[0]], self.decided[judged_pair].extent
        is_change = relation is Relation.CHANGES
        leaves_days_apart = is_change and repeats_days(former, general) and takes_some_days(general, latter, extent)
        is_wider = relation is Relation.NARROWS or leaves_days_apart
        if is_wider and (latter.id, former.id) not in self.relations:
            pair = former.id, latter.id
            self.broader[pair] = min(self.broader.get(pair, relation), relation, key=_STRENGTH.__getitem__)
        elif is_wider:
            return
        elif relation in (Relation.CHANGES, Relation.CORRECTS) and not self._says_remainder(former, judged_pair):
            yield (latter.id, former.id), Relation.CHANGES

    def _says_remainder(self, restatement: Assertion, judged_pair: IdPair) -> bool:
        earlier, later = map(self.by_id.__getitem__, judged_pair)
        remainder = self.decided[judged_pair].remainder
        if not remainder or remainder_fault(remainder, earlier, later) is not None:
            return False
        return lacks_ended_part(restatement.statement, earlier.statement, remainder)

    def _is_slip(self, earlier: str, later: str) -> bool:
        """Whether a correction corrects a slip of the tongue, since both statements are from the same session.

        It then corrects only the one statement. A correction in a later session means that the value was wrong whenever
        it was said.
        """
        is_correction = self.relations[earlier, later] is Relation.CORRECTS
        return is_correction and self.by_id[earlier].session_id == self.by_id[later].session_id

    def _repetitions(self, said: Assertion) -> list[Assertion]:
        """Return the statement, followed by the other statements of the same fact."""
        return [said, *(each for each in self.members.get(self.roots[said.id], ()) if each is not said)]

    def _is_allowed(self, earlier: str, later: str, relation: Relation = Relation.CHANGES) -> bool:
        """Whether code allows `later` to retire `earlier`. A refusal is noted.

        A statement about one occasion does not change a general statement, but it may correct it.
        """
        old, new = self.by_id[earlier], self.by_id[later]
        contest = self._roots_pair(earlier, later)
        if contest in self._settled:
            return True
        if relation is not Relation.CORRECTS and is_about_less(old, new):
            return False
        # Most pairs have the same subject. The repetitions of a fact, which may be many, are only looked at otherwise.
        is_one = self.subjects.are_same(old, new) or self.subjects.concern_one(*map(self._repetitions, (old, new)))
        reason = refusal_reason(old, new, is_same_subject=is_one)
        if reason is None:
            return True
        self.contests.add(contest)
        if (earlier, later) in self.decided:
            self.refused.append(RefusedRetirement(self.decided[earlier, later], reason))
        return False


def _content(said: Assertion) -> tuple[object, ...]:
    """Return a key that is equal for statements that repeat each other exactly."""
    source = said.authority, said.speaker, said.time_is_guess
    return said.act, said.slot, folded(said.value), said.limited_to, said.valid_from, said.valid_to, *source


def _copy_entry(noted: dict[IdPair, T], source: IdPair, target: IdPair) -> None:
    if source in noted:
        noted[target] = noted[source]
