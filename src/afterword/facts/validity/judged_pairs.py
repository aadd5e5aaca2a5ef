"""Which assertions retire or repeat others, by the verdicts on judged pairs and their consequences. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache, cached_property
from typing import TypeVar

from afterword.facts.assertions import (
    PERSON,
    RETIRING_RELATIONS,
    Assertion,
    EvidenceKind,
    Extent,
    Relation,
    SpeechAct,
    Verdict,
    deciding_verdicts,
)
from afterword.facts.subjects import SubjectNames, Subjects
from afterword.facts.validity.alternations import Alternations, IdPair, next_changes
from afterword.facts.validity.judged_remainders import JudgedRemainders
from afterword.facts.validity.periods import names_no_other_days, takes_some_days
from afterword.facts.validity.retirement_guard import RefusedRetirement, is_old_more_general, refusal_reason
from afterword.facts.words import folded

T = TypeVar("T")
_STRENGTH = {Relation.NARROWS: 0, Relation.CHANGES: 1, Relation.RETRACTS: 2, Relation.CORRECTS: 3}


class JudgedPairs:
    """Which assertions retire, repeat, continue or limit others, by the verdicts on pairs of them.

    Verdicts on assertions that are not given are ignored.

    `ordered` holds the assertions in order of saying, `position` the place of each in this order. `verdicts` holds the
    verdict that counts for each pair, `relations` its relation if it has an effect. `roots` maps each assertion to the
    first assertion that it repeats (its root), and `members` maps each root to itself and all assertions that repeat
    it. `retirements` maps each assertion to the later ones that retire it, with their relation. Changes without an
    effect are left out if there may be many (see `facts.validity.alternations`). `contests` holds the pairs of roots
    between which a retirement was refused. `broader_restatements` maps pairs (restatement, narrower statement) to a
    relation: the restatement repeats a statement that the narrower one had narrowed, or limited for some days.
    `extents` and `remainders` hold the extent and the remainder of a pair, if a judge gave them and code accepts them.
    `continued_by` maps an assertion to the later ones that continue it, which have the same root. `exceptions` maps a
    root to the roots of its exceptions.

    Raises ValueError if a verdict's pair is not in order of saying.
    """

    def __init__(
        self, assertions: Iterable[Assertion], verdicts: Iterable[Verdict], names: SubjectNames | None = None
    ) -> None:
        self.by_id: dict[str, Assertion] = {assertion.id: assertion for assertion in assertions}
        self.ordered: list[Assertion] = sorted(self.by_id.values(), key=lambda assertion: assertion.order)
        self.position: dict[str, int] = {assertion.id: index for index, assertion in enumerate(self.ordered)}
        self.verdicts: dict[IdPair, Verdict] = self._verdicts_on_given(verdicts)
        self.relations: dict[IdPair, Relation] = {pair: verdict.relation for pair, verdict in self.verdicts.items()}
        self.names: SubjectNames | None = names
        self.subjects: Subjects = Subjects(self.by_id, self.verdicts.values(), names)
        self.continued_by: dict[str, list[str]] = defaultdict(list)
        self.roots: dict[str, str] = self._roots()
        self.members: dict[str, list[Assertion]] = self._members_by_root()
        for pair in self._redundant_restatements():
            del self.relations[pair]
        self._settled_by_person = {
            self._roots_pair(*pair) for pair, verdict in self.verdicts.items() if verdict.judge == PERSON
        }
        for pair in self._overruled_pairs():
            del self.relations[pair]
        self.refused_retirements: list[RefusedRetirement] = []
        self.contests: set[frozenset[str]] = set()
        self.broader_restatements: dict[IdPair, Relation] = {}
        self.extents: dict[IdPair, Extent] = {}
        self.remainders: dict[IdPair, str] = {}
        self.exceptions: dict[str, set[str]] = self._exceptions()
        for pair in [pair for pair in self.relations if self._repeats_general(*pair)]:
            del self.relations[pair]
        self._judged_remainders = JudgedRemainders(self.by_id, self.verdicts, self.relations, self.roots, self.position)
        self.retirements: dict[str, list[tuple[str, Relation]]] = {assertion.id: [] for assertion in self.ordered}
        for (earlier, later), relation in self._retiring_relations().items():
            self.retirements[earlier].append((later, relation))
        self._pass_exceptions_on()

    def _verdicts_on_given(self, verdicts: Iterable[Verdict]) -> dict[IdPair, Verdict]:
        """Return the verdict that counts for each pair of the given assertions."""
        decided = deciding_verdicts(
            verdict for verdict in verdicts if verdict.earlier_id in self.position and verdict.later_id in self.position
        )
        for earlier, later in decided:
            if self.position[earlier] >= self.position[later]:
                raise ValueError(f"{earlier} was not said before {later}")
        return decided

    def _members_by_root(self) -> dict[str, list[Assertion]]:
        members: dict[str, list[Assertion]] = defaultdict(list)
        for assertion in self.ordered:
            if assertion.act is SpeechAct.STATE:
                members[self.roots[assertion.id]].append(assertion)
        return members

    def _overruled_pairs(self) -> list[IdPair]:
        """Return the pairs that a judge found to retire each other although a person has decided between the facts."""
        return [
            pair
            for pair, relation in self.relations.items()
            if relation in RETIRING_RELATIONS
            and self.verdicts[pair].judge != PERSON
            and self._roots_pair(*pair) in self._settled_by_person
        ]

    @cached_property
    def continuing_ids(self) -> frozenset[str]:
        """The ids of the assertions that continue an earlier one."""
        return frozenset(later for laters in self.continued_by.values() for later in laters)

    @cached_property
    def _alternations(self) -> Alternations:
        return Alternations(self.roots, self.members, self.by_id, self.verdicts)

    def hidden_ids(self) -> frozenset[str]:
        """Return the ids of the statements that a request to erase hides."""
        return frozenset(
            earlier
            for earlier, retirements in self.retirements.items()
            for later, relation in retirements
            if relation is Relation.RETRACTS and self.by_id[later].act is SpeechAct.ERASE
        )

    def is_edit(self, earlier: str, later: str) -> bool:
        """Return whether the later statement is a person's edit of the earlier one."""
        said, verdict = self.by_id[later], self.verdicts.get((earlier, later))
        is_entered = any(cited.kind is EvidenceKind.PERSON for cited in said.evidence)
        return is_entered and said.act is SpeechAct.STATE and verdict is not None and verdict.judge == PERSON

    def _roots_pair(self, earlier: str, later: str) -> frozenset[str]:
        return frozenset({self.roots[earlier], self.roots[later]})

    def _roots(self) -> dict[str, str]:
        """Return the root of each assertion. One that repeats or continues several gets the root of the latest."""
        repeated: dict[str, str] = {}
        for (earlier, later), relation in self.relations.items():
            if not self._both_state(earlier, later):
                continue
            if relation is Relation.CONTINUES and self._may_continue(earlier, later):
                self.continued_by[earlier].append(later)
            if relation is Relation.SAME or later in self.continued_by.get(earlier, ()):
                repeated[later] = max(earlier, repeated.get(later, earlier), key=self.position.__getitem__)
        roots: dict[str, str] = {}
        for assertion in self.ordered:
            roots[assertion.id] = roots[repeated[assertion.id]] if assertion.id in repeated else assertion.id
        return roots

    def _both_state(self, earlier: str, later: str) -> bool:
        return self.by_id[earlier].act is SpeechAct.STATE is self.by_id[later].act

    def _may_continue(self, earlier: str, later: str) -> bool:
        """Whether code allows `later` to set the end of `earlier`. If not, the verdict has no effect."""
        old, new = self.by_id[earlier], self.by_id[later]
        if self.verdicts[earlier, later].judge == PERSON:
            return True
        if is_old_more_general(old, new):
            return False
        return refusal_reason(old, new, is_same_subject=self.subjects.are_same(old, new)) is None

    def _exceptions(self) -> dict[str, set[str]]:
        exceptions: dict[str, set[str]] = defaultdict(set)
        for (earlier, later), relation in self.relations.items():
            is_between_facts = self._both_state(earlier, later) and self.roots[earlier] != self.roots[later]
            if relation is Relation.EXCEPTS and is_between_facts:
                exceptions[self.roots[earlier]].add(self.roots[later])
        return exceptions

    def _repeats_general(self, exception: str, repetition: str) -> bool:
        """Whether `repetition` only repeats a general statement that `exception` limits.

        Then it does not end the exception, even if a judge takes it for a change. A statement that ends the exception
        names other days, or says that something has changed. The answer must not depend on the session, since only the
        nearest restatement is judged.
        """
        said, verdict = self.by_id[exception], self.verdicts[exception, repetition]
        is_case = self.roots[exception] in self.exceptions.get(self.roots[repetition], ())
        is_exception = is_case or said.valid_to is not None
        if not is_exception or verdict.relation is not Relation.CHANGES or verdict.judge == PERSON:
            return False
        return any(
            names_no_other_days(self.by_id[repetition], general)
            and (is_case or self._changes_some_days_only(general, said))
            for general in self.members.get(self.roots[repetition], ())
            if self.position[general.id] < self.position[exception]
        )

    def _changes_some_days_only(self, general: Assertion, exception: Assertion) -> bool:
        """Whether `exception` was judged to change a general statement for some days only."""
        is_change = self.relations.get((general.id, exception.id)) is Relation.CHANGES
        return is_change and takes_some_days(general, exception, self.verdicts[general.id, exception.id].extent)

    def _redundant_restatements(self) -> list[IdPair]:
        """Return the pairs of repeated statements that do not count, since a pair closer together was judged too.

        If two statements are repeated, it depends on the order of arrival which pairs of them are judged. The pair that
        lies closest together always is, and its verdict holds for all of them.
        """
        pairs_by_content: dict[tuple[object, ...], list[tuple[int, int, IdPair]]] = defaultdict(list)
        content_of = cache(lambda id_: _content_key(self.by_id[id_]))
        for (earlier, later), relation in self.relations.items():
            roots = self.roots[earlier], self.roots[later]
            is_repeated = roots[0] != roots[1] and any(len(self.members.get(root, ())) > 1 for root in roots)
            if is_repeated and relation in RETIRING_RELATIONS and self.verdicts[earlier, later].judge != PERSON:
                content = *roots, content_of(earlier), content_of(later)
                places = -self.position[earlier], self.position[later]
                pairs_by_content[content].append((*places, (earlier, later)))
        redundant = []
        for pairs in pairs_by_content.values():
            nearest_end = len(self.ordered)
            for _, end, pair in sorted(pairs):
                if nearest_end <= end:
                    redundant.append(pair)
                nearest_end = min(nearest_end, end)
        return redundant

    def _retiring_relations(self) -> dict[IdPair, Relation]:
        """Return every pair in which the later assertion retires the earlier one, without refused retirements."""
        relations: dict[IdPair, Relation] = {}
        expanded: set[tuple[object, ...]] = set()
        for (earlier, later), relation in self.relations.items():
            if relation in RETIRING_RELATIONS:
                # A second verdict with the same meaning between the same facts adds nothing.
                meaning = self._meaning(earlier, later)
                is_new = meaning not in expanded
                expanded.add(meaning)
                inherited_pairs = self._inherited_relations(earlier, later, relation) if is_new else ()
                for pair, inherited in (((earlier, later), relation), *inherited_pairs):
                    if pair == (earlier, later) or pair not in self.relations:
                        relations[pair] = max(relations.get(pair, inherited), inherited, key=_STRENGTH.__getitem__)
                        self._record_extent_and_remainder(pair, (earlier, later))
        self.broader_restatements = {
            pair: relation for pair, relation in self.broader_restatements.items() if self._may_retire(*pair)
        }
        allowed = {pair: relation for pair, relation in relations.items() if self._may_retire(*pair, relation)}
        return allowed | self._retired_by_corrections(allowed)

    def _meaning(self, earlier: str, later: str) -> tuple[object, ...]:
        """Return a key that is equal for verdicts that imply the same for the repetitions of their statements."""
        verdict, is_slip = self.verdicts[earlier, later], self._corrects_slip(earlier, later)
        return self.roots[earlier], self.roots[later], verdict.relation, verdict.extent, verdict.remainder, is_slip

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
                if pair not in allowed and self._is_unjudged_pair_of_two_facts(*pair) and self._may_retire(*pair):
                    inherited[pair] = Relation.CHANGES
                    _copy_entry(self.extents, (old, wrong), pair)
                    _copy_entry(self.remainders, (old, wrong), pair)
                    retired_by[right].add(old)
        return inherited

    def _is_unjudged_pair_of_two_facts(self, earlier: str, later: str) -> bool:
        """Whether no verdict counts for a pair of statements of two facts."""
        return (earlier, later) not in self.relations and self.roots[earlier] != self.roots[later]

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
                    self.broader_restatements |= {
                        (later, exception): relation
                        for exception, relation in self.retirements[general.id]
                        if relation is Relation.CHANGES
                        and self.position[exception] < self.position[later]
                        and takes_some_days(general, self.by_id[exception], self.extents.get((general.id, exception)))
                    }

    def _record_extent_and_remainder(self, pair: IdPair, judged_pair: IdPair) -> None:
        """Record for `pair` the extent and the remainder that a judge gave `judged_pair`, if code accepts them.

        The statements of `pair` are those of `judged_pair`, or repeat them. Nothing is recorded if their order is
        reversed.
        """
        if self.roots[pair[0]] != self.roots[judged_pair[0]]:
            return
        extent, remainder = self.verdicts[judged_pair].extent, self._judged_remainders.remainder_of(judged_pair)
        if extent is not None:
            self.extents[pair] = min(extent, self.extents.get(pair, extent))
        if remainder is not None:
            self.remainders[pair] = min(remainder, self.remainders.get(pair, remainder))

    def _inherited_relations(self, earlier: str, later: str, relation: Relation) -> Iterable[tuple[IdPair, Relation]]:
        """Yield the pairs, with relations, that a verdict implies for the repetitions of its two statements."""
        old, new = self._fact_members(earlier), self._fact_members(later)
        if old is new or len(old) == len(new) == 1:
            yield (earlier, later), relation
            return
        if relation is Relation.CHANGES and self._alternations.only_replace_each_other(
            self.roots[earlier], self.roots[later]
        ):
            yield from ((pair, relation) for pair in next_changes((old, new), self.position, self.relations))
            return
        is_slip = self._corrects_slip(earlier, later)
        for former in old:
            for latter in new:
                if self.position[former.id] < self.position[latter.id]:
                    is_judged_pair = (former.id, latter.id) == (earlier, later)
                    inherited = Relation.CHANGES if is_slip else relation
                    yield (former.id, latter.id), relation if is_judged_pair else inherited
                else:
                    yield from self._inherited_by_later_repetition(former, latter, (earlier, later))

    def _inherited_by_later_repetition(
        self, former: Assertion, latter: Assertion, judged_pair: IdPair
    ) -> Iterable[tuple[IdPair, Relation]]:
        """Yield what a verdict implies if its earlier statement is repeated (`former`) after its later one (`latter`).

        The repetition usually changes the fact back. It does not if it repeats only the remainder of the sentence, or
        if it repeats a general statement that the later one limited for some days.
        """
        relation = self.relations[judged_pair]
        general, extent = self.by_id[judged_pair[0]], self.verdicts[judged_pair].extent
        is_change = relation is Relation.CHANGES
        leaves_days_apart = (
            is_change and names_no_other_days(former, general) and takes_some_days(general, latter, extent)
        )
        is_wider = relation is Relation.NARROWS or leaves_days_apart
        if is_wider and (latter.id, former.id) not in self.relations:
            pair = former.id, latter.id
            self.broader_restatements[pair] = min(
                self.broader_restatements.get(pair, relation), relation, key=_STRENGTH.__getitem__
            )
        elif is_wider or self._judged_remainders.restates_remainder_only(former, judged_pair):
            return
        elif relation in (Relation.CHANGES, Relation.CORRECTS):
            yield (latter.id, former.id), Relation.CHANGES

    def _corrects_slip(self, earlier: str, later: str) -> bool:
        """Whether a correction corrects a slip of the tongue, since both statements are from the same session.

        It then corrects only the one statement. A correction in a later session means that the value was wrong whenever
        it was said.
        """
        is_correction = self.relations[earlier, later] is Relation.CORRECTS
        return is_correction and self.by_id[earlier].session_id == self.by_id[later].session_id

    def _fact_members(self, id_: str) -> list[Assertion]:
        """Return the statements of the fact of a statement, or a retraction alone."""
        return self.members.get(self.roots[id_]) or [self.by_id[id_]]

    def _repetitions(self, said: Assertion) -> list[Assertion]:
        """Return the statement, followed by the other statements of the same fact."""
        return [said, *(each for each in self.members.get(self.roots[said.id], ()) if each is not said)]

    def _may_retire(self, earlier: str, later: str, relation: Relation = Relation.CHANGES) -> bool:
        """Whether code allows `later` to retire `earlier`. A refusal is noted.

        A statement about one occasion does not change a general statement, but it may correct it.
        """
        old, new = self.by_id[earlier], self.by_id[later]
        contest = self._roots_pair(earlier, later)
        if contest in self._settled_by_person:
            return True
        if relation is not Relation.CORRECTS and is_old_more_general(old, new):
            return False
        # Most pairs have the same subject. The repetitions of a fact, which may be many, are only looked at otherwise.
        is_one = self.subjects.are_same(old, new) or self.subjects.concern_one_subject(
            *map(self._repetitions, (old, new))
        )
        reason = refusal_reason(old, new, is_same_subject=is_one)
        if reason is None:
            return True
        self.contests.add(contest)
        if (earlier, later) in self.verdicts:
            self.refused_retirements.append(RefusedRetirement(self.verdicts[earlier, later], reason))
        return False


def _content_key(said: Assertion) -> tuple[object, ...]:
    """Return a key that is equal for statements that repeat each other exactly."""
    source = said.authority, said.speaker, said.time_is_guess
    return said.act, said.slot, folded(said.value), said.limited_to, said.valid_from, said.valid_to, *source


def _copy_entry(noted: dict[IdPair, T], source: IdPair, target: IdPair) -> None:
    if source in noted:
        noted[target] = noted[source]
