"""The assertions and verdicts of one scope, with indexes, as an immutable value. Pure.

`revised` returns a new version that shares all unchanged parts, so the cost of an update depends only on what it
changes. A session that is being judged keeps the version with which it started.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from afterword.facts.assertions import Assertion, Verdict, deciding_verdicts
from afterword.facts.persistent_map import LazyMap, PersistentMap, group_ids, regroup_ids
from afterword.facts.similarity import StatementIndex
from afterword.facts.subjects import LabelPair, SubjectNames, joined_labels, renamed_labels, undoes_renaming
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.validity.judged_pairs import JudgedPairs
from afterword.facts.validity.neighbourhood import affected_ids, ids_needed_for_histories, replacement_times
from afterword.facts.validity.timeline import histories_of_pairs
from afterword.facts.words import folded


class Knowledge:
    """All live assertions and verdicts of one scope at one revision.

    `ids_by_subject` holds the ids of the assertions about each folded subject, `ids_by_session` those of each session.
    `verdicts_by_id` holds the verdicts on each assertion. `replacement_times` holds the times at which each replaced
    assertion was replaced. `last_said_at` is the time of the latest assertion.
    """

    def __init__(
        self,
        revision: int,
        by_id: PersistentMap[str, Assertion],
        verdicts_by_id: PersistentMap[str, tuple[Verdict, ...]],
        ids_by_subject: PersistentMap[str, Sequence[str]],
        ids_by_session: PersistentMap[str, Sequence[str]],
        last_said_at: datetime | None,
    ) -> None:
        self.revision = revision
        self.by_id = by_id
        self.verdicts_by_id = verdicts_by_id
        self.ids_by_subject = ids_by_subject
        self.ids_by_session = ids_by_session
        self.last_said_at = last_said_at
        self.replacement_times: PersistentMap[str, tuple[datetime, ...]] = PersistentMap({})
        self._make_index: Callable[[], StatementIndex] | None = None
        self._last_judged: JudgedPairs | None = None
        self.names: SubjectNames = SubjectNames({}, ())
        self._joins: Mapping[tuple[str, str], LabelPair] = {}
        self._renames: Mapping[str, LabelPair] = {}

    @classmethod
    def of(cls, revision: int, assertions: Iterable[Assertion], verdicts: Iterable[Verdict]) -> Knowledge:
        """Return the knowledge of these assertions and verdicts. A verdict may name an assertion that is not live."""
        by_id, verdicts = {assertion.id: assertion for assertion in assertions}, list(verdicts)
        knowledge = cls(
            revision,
            PersistentMap(by_id),
            PersistentMap(_group_verdicts(verdicts)),
            group_ids(_subject_pairs(by_id.values())),
            group_ids(_session_pairs(by_id.values())),
            max((assertion.said_at for assertion in by_id.values()), default=None),
        )
        knowledge.replacement_times = PersistentMap(
            {id_: times for id_ in by_id if (times := knowledge._replacement_times(id_)) is not None}
        )
        spellings = {label: knowledge._spelling(label) for label in knowledge.ids_by_subject}
        joins = knowledge._joins_of(verdict.pair for verdict in verdicts if verdict.joins_subjects)
        knowledge._set_names(spellings, joins, knowledge._renames_of(by_id))
        return knowledge

    @classmethod
    def of_stored(
        cls,
        revision: int,
        *,
        assertions: LazyMap[str, Assertion],
        verdicts: LazyMap[str, tuple[Verdict, ...]],
        ids_by_subject: PersistentMap[str, Sequence[str]],
        ids_by_session: PersistentMap[str, Sequence[str]],
        all_spellings: Mapping[str, set[str]],
        possibly_replaced_ids: Iterable[str],
        joined_pairs: Iterable[tuple[str, str]],
        renaming_ids: Iterable[str],
        last_said_at: datetime | None,
        make_index: Callable[[], StatementIndex],
    ) -> Knowledge:
        """Return the knowledge in a store. Each assertion and verdict is made when it is first needed.

        `all_spellings` holds the spellings of each subject whose name has several words. `possibly_replaced_ids` are
        the assertions that may have been replaced, `joined_pairs` the pairs whose verdicts join their subjects, and
        `renaming_ids` the assertions that give a former name of their subject.
        """
        groups = ids_by_subject, ids_by_session
        knowledge = cls(revision, PersistentMap(assertions), PersistentMap(verdicts), *groups, last_said_at)
        times = LazyMap(dict.fromkeys(possibly_replaced_ids), knowledge._replacement_times)
        knowledge.replacement_times = PersistentMap(times)
        several = (label for label, spellings in all_spellings.items() if len(spellings) > 1)
        spellings = {label: label for label in ids_by_subject}
        spellings |= {label: spelling for label, (spelling, *_) in all_spellings.items()}
        spellings |= {label: knowledge._spelling(label) for label in several}
        knowledge._set_names(spellings, knowledge._joins_of(joined_pairs), knowledge._renames_of(renaming_ids))
        knowledge._make_index = make_index
        return knowledge

    @cached_property
    def index(self) -> StatementIndex:
        """The index that finds the statements that may affect another one."""
        return self._make_index() if self._make_index else StatementIndex.of(self.assertions)

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """All live assertions."""
        return tuple(self.by_id.as_dict().values())

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All verdicts in force."""
        by_id = self.verdicts_by_id.as_dict()
        return tuple(verdict for id_, judged in by_id.items() for verdict in judged if verdict.earlier_id == id_)

    @property
    def effective_renaming_ids(self) -> Collection[str]:
        """The ids of the assertions whose renaming of their subject is in effect."""
        return self._renames.keys()

    def said_in(self, session_id: str) -> list[Assertion]:
        """Return the assertions of a session."""
        return [self.by_id[id_] for id_ in self.ids_by_session.get(session_id, ())]

    def revised(
        self,
        revision: int,
        *,
        removed: Iterable[Assertion] = (),
        added: Iterable[Assertion] = (),
        removed_verdicts: Iterable[Verdict] = (),
        added_verdicts: Iterable[Verdict] = (),
    ) -> Knowledge:
        """Return the knowledge after assertions and verdicts were removed and added.

        An added verdict replaces the one of the same judge on the same pair.
        """
        removed = [self.by_id[assertion.id] for assertion in removed if assertion.id in self.by_id]
        removed_ids = {assertion.id for assertion in removed}
        new_ids = {assertion.id: assertion for assertion in added}
        added = [new for new in new_ids.values() if new.id in removed_ids or new.id not in self.by_id]
        added_verdicts = list(added_verdicts)
        changed_verdicts = [*removed_verdicts, *added_verdicts]
        after = Knowledge(
            revision,
            self.by_id.updated({**dict.fromkeys(removed_ids), **{assertion.id: assertion for assertion in added}}),
            _updated_verdicts(self.verdicts_by_id, changed_verdicts, added_verdicts),
            regroup_ids(self.ids_by_subject, _subject_pairs(removed), _subject_pairs(added)),
            regroup_ids(self.ids_by_session, _session_pairs(removed), _session_pairs(added)),
            None,
        )
        is_latest_removed = any(assertion.said_at == self.last_said_at for assertion in removed)
        known_times = [said.said_at for said in after.assertions] if is_latest_removed else [self.last_said_at]
        after.last_said_at = max(filter(None, (*known_times, *(said.said_at for said in added))), default=None)
        if "index" in self.__dict__ or self._make_index is not None:
            after.index = self.index.revised(removed, added)
        after._derive_from(self, [*removed, *added], changed_verdicts)
        return after

    def _derive_from(self, before: Knowledge, changed: list[Assertion], changed_verdicts: list[Verdict]) -> None:
        """Take over the times of replacements and the names, and derive again those that changes may affect."""
        rejudged = {verdict.earlier_id for verdict in changed_verdicts}
        for said in changed:
            rejudged |= {said.id, *(verdict.earlier_id for verdict in self.verdicts_by_id.get(said.id, ()))}
        self.replacement_times = before.replacement_times.updated(
            {id_: self._replacement_times(id_) for id_ in rejudged}
        )
        self.names, self._joins, self._renames = before.names, before._joins, before._renames
        self._update_names(changed, changed_verdicts)

    def affected_ids(self, before: Knowledge, changed_ids: Iterable[str]) -> set[str]:
        """Return all assertions whose facts may differ from `before`.

        `changed_ids` were added, removed or judged.
        """
        labels = self.names.changed_labels(before.names)
        renamed = {id_ for label in labels for side in (self, before) for id_ in side.ids_by_subject.get(label, ())}
        return affected_ids(before, self, changed_ids, renamed)

    def judged_pairs(self, ids: Iterable[str]) -> JudgedPairs:
        """Return the judged pairs on which the facts of these assertions depend. Others may be incomplete."""
        live = {id_: self.by_id[id_] for id_ in ids_needed_for_histories(self, ids) if id_ in self.by_id}
        verdicts = [
            verdict
            for id_ in live
            for verdict in self.verdicts_by_id.get(id_, ())
            if verdict.earlier_id == id_ and verdict.later_id in live
        ]
        last = self._last_judged  # a session often changes the same facts as the session before
        if last is not None and _is_made_of(last, live, verdicts, self.names):
            return last
        judged = JudgedPairs(live.values(), verdicts, self.names)
        self._last_judged = judged
        return judged

    def histories(self, ids: Collection[str]) -> list[FactHistory]:
        """Return the histories of the facts to which these assertions belong, in order of saying."""
        return histories_of_pairs(self.judged_pairs(ids), ids)

    def _replacement_times(self, id_: str) -> tuple[datetime, ...] | None:
        verdicts = self.verdicts_by_id.get(id_, ())
        return replacement_times(id_, self.by_id, verdicts) if id_ in self.by_id and verdicts else None

    def _joins_of(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], LabelPair]:
        """Return the labels that the deciding verdicts on these pairs join in the whole scope."""
        pairs = {*pairs}
        verdicts = (
            verdict
            for earlier_id in {pair[0] for pair in pairs if pair[0] in self.by_id}
            for verdict in self.verdicts_by_id.get(earlier_id, ())
            if verdict.earlier_id == earlier_id and verdict.pair in pairs and verdict.later_id in self.by_id
        )
        labels = {pair: joined_labels(verdict, self.by_id) for pair, verdict in deciding_verdicts(verdicts).items()}
        return {pair: joined for pair, joined in labels.items() if joined}

    def _renames_of(self, ids: Iterable[str]) -> dict[str, LabelPair]:
        """Return the former and the new name of each of these statements that renames its subject.

        A renaming that was withdrawn or corrected does not count.
        """
        labels = {id_: renamed_labels(self.by_id[id_]) for id_ in ids if id_ in self.by_id}
        return {id_: pair for id_, pair in labels.items() if pair is not None and not self._is_renaming_undone(id_)}

    def _is_renaming_undone(self, id_: str) -> bool:
        verdicts = (
            verdict
            for verdict in self.verdicts_by_id.get(id_, ())
            if verdict.earlier_id == id_ and verdict.later_id in self.by_id
        )
        return any(undoes_renaming(verdict, self.by_id) for verdict in deciding_verdicts(verdicts).values())

    def _update_names(self, changed: list[Assertion], changed_verdicts: list[Verdict]) -> None:
        """Derive the names of subjects again if changed assertions or verdicts may have changed them."""
        verdicts_on_changed = [verdict for said in changed for verdict in self.verdicts_by_id.get(said.id, ())]
        pairs = {verdict.pair for verdict in (*changed_verdicts, *verdicts_on_changed)}
        joins = {pair: labels for pair, labels in self._joins.items() if pair not in pairs} | self._joins_of(pairs)
        spellings = {**self.names.spellings}
        for label in {folded(assertion.subject) for assertion in changed}:
            spellings.pop(label, None)
            if label in self.ids_by_subject:
                spellings[label] = self._spelling(label)
        ids = {*(said.id for said in changed), *(id_ for pair in pairs for id_ in pair)}
        renames = {id_: labels for id_, labels in self._renames.items() if id_ not in ids} | self._renames_of(ids)
        if joins != self._joins or renames != self._renames or spellings != self.names.spellings:
            self._set_names(spellings, joins, renames)

    def _set_names(
        self, spellings: Mapping[str, str], joins: Mapping[tuple[str, str], LabelPair], renames: Mapping[str, LabelPair]
    ) -> None:
        self.names = SubjectNames(spellings, [*joins.values(), *renames.values()])
        self._joins, self._renames = joins, renames

    def _spelling(self, label: str) -> str:
        """Return the latest spelling of a folded name. A single word stays folded, since it is no full name."""
        if " " not in label:
            return label
        said = [self.by_id[id_] for id_ in self.ids_by_subject[label]]
        spellings = {assertion.subject for assertion in said}
        return spellings.pop() if len(spellings) == 1 else max(said, key=lambda assertion: assertion.order).subject


def _is_made_of(
    judged: JudgedPairs, by_id: Mapping[str, Assertion], verdicts: Iterable[Verdict], names: SubjectNames
) -> bool:
    """Whether judged pairs were made of exactly these assertions, verdicts and names."""
    is_equal = judged.by_id == by_id and judged.verdicts == deciding_verdicts(verdicts)
    return is_equal and judged.names is not None and not names.changed_labels(judged.names)


def _group_verdicts(verdicts: Iterable[Verdict]) -> dict[str, tuple[Verdict, ...]]:
    """Return the verdicts on each assertion."""
    verdicts_by_id: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        for id_ in verdict.pair:
            verdicts_by_id[id_].append(verdict)
    return {id_: tuple(judged) for id_, judged in verdicts_by_id.items()}


def _updated_verdicts(
    before: PersistentMap[str, tuple[Verdict, ...]], changed: list[Verdict], added: list[Verdict]
) -> PersistentMap[str, tuple[Verdict, ...]]:
    changed_keys = {(*verdict.pair, verdict.judge) for verdict in changed}
    added_by_id = {**{id_: () for verdict in changed for id_ in verdict.pair}, **_group_verdicts(added)}
    changes: dict[str, tuple[Verdict, ...] | None] = {}
    for id_, new in added_by_id.items():
        unchanged = (old for old in before.get(id_, ()) if (*old.pair, old.judge) not in changed_keys)
        changes[id_] = (*unchanged, *new) or None
    return before.updated(changes)


def _subject_pairs(assertions: Iterable[Assertion]) -> Iterator[tuple[str, str]]:
    """Yield the folded subject and the id of each assertion."""
    return ((folded(assertion.subject), assertion.id) for assertion in assertions)


def _session_pairs(assertions: Iterable[Assertion]) -> Iterator[tuple[str, str]]:
    """Yield the session and the id of each assertion from a session."""
    return ((assertion.session_id, assertion.id) for assertion in assertions if assertion.session_id is not None)
