"""What is live in one scope, laid out so that a change costs by what it touches, not by all that is known. Pure.

Nothing here is ever changed in place: `moved` returns another value that shares what has stayed the same, so that a
session that is being judged goes on reading what it began with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property

from afterword.facts.assertions import PERSON, Assertion, Relation, Verdict
from afterword.facts.judged_pairs import deciding_verdict
from afterword.facts.persistent_map import PersistentMap, group_ids, regroup_ids
from afterword.facts.statement_index import StatementIndex
from afterword.facts.subjects import Labels, SubjectNames, joined_labels
from afterword.facts.words import folded

Excerpt = tuple[list[Assertion], list[Verdict], SubjectNames]


class Knowledge:
    """Everything live in one scope at one revision: assertions by id, and of each the verdicts on it.

    `under` holds the ids of what is said of each subject (folded), `within` those of what each session says, and
    `last_said_at` when the last of it was said.
    """

    def __init__(
        self,
        revision: int,
        by_id: PersistentMap[str, Assertion],
        judged: PersistentMap[str, tuple[Verdict, ...]],
        under: PersistentMap[str, tuple[str, ...]],
        within: PersistentMap[str, tuple[str, ...]],
        last_said_at: datetime | None,
    ) -> None:
        self.revision, self.by_id, self.judged = revision, by_id, judged
        self.under, self.within, self.last_said_at = under, within, last_said_at
        self.names = SubjectNames({}, ())
        self._joins: Mapping[tuple[str, str], Labels] = {}

    @classmethod
    def of(cls, revision: int, assertions: Iterable[Assertion], verdicts: Iterable[Verdict]) -> Knowledge:
        """Return what these make together; verdicts may name what is not live."""
        by_id = {one.id: one for one in assertions}
        said = list(by_id.values())
        judged: dict[str, list[Verdict]] = defaultdict(list)
        for one in verdicts:
            judged[one.earlier_id].append(one)
            judged[one.later_id].append(one)
        known = cls(
            revision,
            PersistentMap(by_id),
            PersistentMap({name: tuple(found) for name, found in judged.items()}),
            group_ids(_labels(said)),
            group_ids(_tellers(said)),
            max((each.said_at for each in said), default=None),
        )
        known._joins = known._joining({_pair(one) for found in judged.values() for one in found if one.joins_subjects})
        known.names = SubjectNames({label: known._written(label) for label in known.under}, known._joins.values())
        return known

    @cached_property
    def postings(self) -> StatementIndex:
        """Where to look for what bears on a statement."""
        return StatementIndex.of(self.assertions)

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """All that is live."""
        return tuple(self.by_id.all().values())

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts in force."""
        return tuple(one for name, found in self.judged.all().items() for one in found if one.earlier_id == name)

    def said_in(self, session_id: str) -> list[Assertion]:
        """Return what a session says."""
        return [self.by_id[name] for name in self.within.get(session_id, ())]

    def moved(
        self,
        revision: int,
        *,
        gone: Iterable[Assertion] = (),
        come: Iterable[Assertion] = (),
        dropped: Iterable[Verdict] = (),
        given: Iterable[Verdict] = (),
    ) -> Knowledge:
        """Return what is known when assertions have gone and come, and verdicts were dropped and given.

        A verdict that is given takes the place of the same judge's on the same pair.
        """
        gone = [self.by_id[one.id] for one in gone if one.id in self.by_id]
        lost = {one.id for one in gone}
        come = [one for one in {one.id: one for one in come}.values() if one.id in lost or one.id not in self.by_id]
        dropped, given = list(dropped), list(given)
        after = Knowledge(
            revision,
            self.by_id.moved({**dict.fromkeys(lost), **{one.id: one for one in come}}),
            _judged(self.judged, [*dropped, *given], given),
            regroup_ids(self.under, _labels(gone), _labels(come)),
            regroup_ids(self.within, _tellers(gone), _tellers(come)),
            None,
        )
        after.last_said_at = self._last_said_at(after, gone, come)
        if "postings" in self.__dict__:
            after.postings = self.postings.moved(gone, come)
        after.names, after._joins = self.names, self._joins
        after._rename([*gone, *come], [*dropped, *given])
        return after

    def component(self, ids: Iterable[str], *others: Knowledge) -> set[str]:
        """Return all that hangs together with these: by verdicts that bear on the facts, here or in `others`."""
        found: set[str] = set()
        todo = list(ids)
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                todo += [end for known in (self, *others) for end in known._bound(one)]
        return found

    def touched(self, before: Knowledge, ids: Iterable[str]) -> set[str]:
        """Return all whose facts may differ from before, where `ids` have come, gone, or been judged otherwise."""
        renamed = self.names.other_than(before.names)
        seeds = {one for label in renamed for known in (self, before) for one in known.under.get(label, ())}
        return self.component({*ids, *seeds}, before)

    def excerpt(self, ids: Iterable[str]) -> Excerpt:
        """Return what is live of these, the verdicts on them, and the names of the whole scope."""
        ids = [one for one in ids if one in self.by_id]
        verdicts = dict.fromkeys(one for name in ids for one in self.judged.get(name, ()))
        return [self.by_id[one] for one in ids], list(verdicts), self.names

    def _last_said_at(self, after: Knowledge, gone: list[Assertion], come: list[Assertion]) -> datetime | None:
        if any(one.said_at == self.last_said_at for one in gone):
            return max((one.said_at for one in after.assertions), default=None)
        return max((at for at in (self.last_said_at, *(one.said_at for one in come)) if at), default=None)

    def _bound(self, name: str) -> list[str]:
        if name not in self.by_id:
            return []
        ends = (end for one in self.judged.get(name, ()) if _binds(one) for end in _pair(one))
        return [end for end in ends if end in self.by_id]

    def _joining(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Labels]:
        """Return, of these pairs, those whose deciding verdict makes their labels one."""
        found: dict[tuple[str, str], Labels] = {}
        for pair in pairs:
            verdicts = [one for one in self.judged.get(pair[0], ()) if _pair(one) == pair]
            labels = None
            if verdicts and pair[0] in self.by_id and pair[1] in self.by_id:
                labels = joined_labels(deciding_verdict(verdicts), self.by_id)
            if labels:
                found[pair] = labels
        return found

    def _rename(self, moved: list[Assertion], judged: list[Verdict]) -> None:
        """Find out anew what names mean, where what has moved may have changed that."""
        on_moved = [one for said in moved for one in self.judged.get(said.id, ())]
        pairs = {_pair(one) for one in (*judged, *on_moved)}
        joins = {pair: labels for pair, labels in self._joins.items() if pair not in pairs} | self._joining(pairs)
        told = {**self.names.written}
        for label in {folded(one.subject) for one in moved}:
            told.pop(label, None)
            if label in self.under:
                told[label] = self._written(label)
        if joins != self._joins or told != self.names.written:
            self.names, self._joins = SubjectNames(told, joins.values()), joins

    def _written(self, label: str) -> str:
        """Return a label as it was written last; of one word, which is nobody's full name, as it is folded."""
        if " " not in label:
            return label
        said = [self.by_id[one] for one in self.under[label]]
        forms = {one.subject for one in said}
        return forms.pop() if len(forms) == 1 else max(said, key=lambda one: one.order).subject


def _binds(verdict: Verdict) -> bool:
    """Whether a verdict makes the facts of one side depend on the other; that two stand beside each other does not,
    unless a person says so."""
    is_idle = verdict.relation is Relation.BESIDE and verdict.judge != PERSON
    return not is_idle or verdict.joins_subjects or verdict.parts_subjects


def _pair(verdict: Verdict) -> tuple[str, str]:
    return verdict.earlier_id, verdict.later_id


def _judged(
    before: PersistentMap[str, tuple[Verdict, ...]], stale: list[Verdict], given: list[Verdict]
) -> PersistentMap[str, tuple[Verdict, ...]]:
    keys = {(*_pair(one), one.judge) for one in stale}
    changes: dict[str, tuple[Verdict, ...] | None] = {}
    for name in {end for one in stale for end in _pair(one)}:
        left = (one for one in before.get(name, ()) if (*_pair(one), one.judge) not in keys)
        changes[name] = (*left, *(one for one in given if name in _pair(one))) or None
    return before.moved(changes)


def _labels(said: Iterable[Assertion]) -> Iterator[tuple[str, str]]:
    return ((folded(one.subject), one.id) for one in said)


def _tellers(said: Iterable[Assertion]) -> Iterator[tuple[str, str]]:
    return ((one.session_id, one.id) for one in said if one.session_id is not None)
