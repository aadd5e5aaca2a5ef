"""What hangs together: laying out what a change touches, and nothing else, gives the facts of everything laid out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.facts import knowledge
from afterword.facts.assertions import PERSON, RETIRING, Assertion, Relation, Verdict
from afterword.facts.knowledge import Knowledge
from afterword.facts.persistent_map import PersistentMap, group_ids, regroup_ids
from afterword.facts.scopes import Scope
from afterword.facts.subjects import SubjectNames
from afterword.facts.timeline import FactHistory, fact_histories
from afterword.pipeline.resolution import required_pairs
from afterword.store.database.cache import Cache, Draft
from histories import LENA, Book, Digits, Dump, History, Judge, Told, dumped, histories, holds_for, statement

NAMES = ("user", "Jan", "Jan Petrik", "jan petrik", "Jan Oduya", "Petrik", "Jan Oduya Lang", "the launch")


def named(one: Assertion) -> Assertion:
    """Return the statement about one of a few people, of whom several share a name."""
    return replace(one, subject=Digits(Judge(7).drawn(one.id)).pick(NAMES))


class Namer(Judge):
    """A judge who often finds that two names are one person, and now and then that they are two."""

    def verdict(self, earlier: Assertion, later: Assertion) -> Verdict | None:
        digits = Digits(self.drawn("names", earlier.id, later.id))
        found = super().verdict(earlier, later)
        if digits.pick((True, False, False)):
            relation = digits.pick((Relation.SAME, Relation.BESIDE, Relation.CHANGES))
            who = digits.pick((self.version, self.version, PERSON))
            found = found or Verdict(earlier.id, later.id, relation, "as drawn", who)
            return replace(found, joins_subjects=digits.pick((True, False)), parts_subjects=digits.pick((False, True)))
        return found


def with_names(history: History) -> History:
    told = (Told(one.id, tuple(map(named, one.whole)), tuple(map(named, one.early))) for one in history.sessions)
    return replace(history, sessions=tuple(told))


@dataclass
class Followed:
    """What is known and held as a book goes on, each time brought up to date by what has moved alone."""

    known: Knowledge
    held: dict[str, FactHistory]

    def follow(self, book: Book) -> None:
        before, said = self.known, {one.id: one for one in book.assertions}
        judged = {(one.earlier_id, one.later_id, one.judge): one for one in book.verdicts}
        was = {(one.earlier_id, one.later_id, one.judge): one for one in before.verdicts}
        removed = [one for one in before.assertions if one.id not in said]
        added = [one for one in said.values() if one.id not in before.by_id]
        dropped = [one for key, one in was.items() if key not in judged]
        judged_anew = [one for key, one in judged.items() if was.get(key) != one]
        self.known = before.revised(
            before.revision + 1, removed=removed, added=added, removed_verdicts=dropped, added_verdicts=judged_anew
        )
        ends = [end for one in (*dropped, *judged_anew) for end in (one.earlier_id, one.later_id)]
        touched = self.known.affected_ids(before, [*(one.id for one in (*removed, *added)), *ends])
        stale = [name for name, course in self.held.items() if touched & {one.id for one in course.members}]
        for name in stale:
            del self.held[name]
        self.held.update((course.id, course) for course in fact_histories(*self.known.excerpt(touched)))


def whole(laid_out: Iterable[FactHistory]) -> Dump:
    return sorted((*told, course.may_be) for course in laid_out for told in dumped([course]))


def the_parts_are_the_whole(history: History) -> None:
    """After each move what is held is what everything that counts gives, laid out at once."""
    book, followed = Book(history.judge), Followed(Knowledge.of(0, (), ()), {})
    _ = followed.known.index

    def compare() -> None:
        followed.follow(book)
        assert whole(followed.held.values()) == whole(fact_histories(book.assertions, book.verdicts))
        everything = followed.known.assertions
        assert required_pairs(everything, followed.known.index) == required_pairs(everything, ())

    history.happen(book, undos=True, seen=compare)


@pytest.mark.parametrize("share", [pytest.param(1, id="ci"), pytest.param(10, id="soak", marks=pytest.mark.soak)])
@pytest.mark.parametrize("judge", [Judge, Namer])
def test_what_a_move_touches_is_all_that_it_changes(judge: Callable[[int], Judge], share: int) -> None:
    """Read, grown and undone, with joins, parts and a person's decisions among people who share names."""
    drawn = histories(judge)
    holds_for(60 * share, drawn.map(with_names) if judge is Namer else drawn, the_parts_are_the_whole)


def names_mean_what_they_meant(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SubjectNames, "changed_labels", lambda *_: set())


def only_retirements_bind(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(knowledge, "_connects_facts", lambda one: one.relation in RETIRING)


def what_a_person_keeps_apart_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(knowledge, "_connects_facts", lambda one: one.relation is not Relation.BESIDE or one.joins_subjects)


def what_hung_together_before_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    connected_ids = Knowledge.connected_ids
    patch.setattr(Knowledge, "connected_ids", lambda self, ids, *_: connected_ids(self, ids))


def only_the_moved_themselves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Knowledge, "connected_ids", lambda _self, ids, *_: set(ids))


@pytest.mark.parametrize(
    "plant",
    [
        names_mean_what_they_meant,
        only_retirements_bind,
        what_a_person_keeps_apart_is_forgotten,
        what_hung_together_before_is_forgotten,
        only_the_moved_themselves,
    ],
)
def test_a_change_that_is_followed_too_short_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        holds_for(60, histories(Namer).map(with_names), the_parts_are_the_whole, is_fixed=True)


def known(revision: int, *numbers: int) -> Knowledge:
    return Knowledge.of(revision, [statement(0, f"s{number}", 1, number) for number in numbers], ())


def test_others_see_what_a_transaction_has_found_out_once_it_is_committed() -> None:
    cache = Cache()
    draft, after = Draft(cache), known(1, 1)
    draft.keep(LENA, after)
    assert (draft.find(LENA, 1), Draft(cache).find(LENA, 1)) == (after, None)
    draft.commit()
    assert Draft(cache).find(LENA, 1) is after
    assert Draft(cache).find(LENA, 2) is None


def test_what_was_used_least_lately_is_let_go_first() -> None:
    cache, scopes = Cache(most=4), [Scope.user(name) for name in "abc"]
    for scope in scopes[:2]:
        cache.keep(scope, known(1, 1, 2))
    assert cache.find(scopes[0], 1)
    cache.keep(scopes[2], known(1, 1))
    assert [cache.find(scope, 1) is not None for scope in scopes] == [True, False, True]
    cache.keep(scopes[1], known(2, *range(9)))
    assert cache.find(scopes[1], 2), "one that is too large is held alone"
    assert cache.find(scopes[0], 1) is None


@given(st.lists(st.dictionaries(st.integers(0, 9), st.none() | st.integers(1, 9)), max_size=6), st.integers(0, 4))
def test_layers_are_what_was_changed_one_by_one(changes: list[dict[int, int | None]], most: int) -> None:
    expected: dict[int, int] = {0: 1, 1: 1, 2: 1}
    layers = first = PersistentMap(dict(expected), max_changes=most)
    for change in changes:
        layers = layers.updated(change)
        for key, value in change.items():
            expected.pop(key, None)
            expected |= {} if value is None else {key: value}
        assert layers == expected
        assert (len(layers), set(layers)) == (len(expected), set(expected))
        assert [key in layers for key in range(9)] == [key in expected for key in range(9)]
    assert first == {0: 1, 1: 1, 2: 1}


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), unique=True), st.data())
def test_regrouped_is_grouped_anew(pairs: list[tuple[int, str]], data: st.DataObject) -> None:
    left = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    new = [(key, name.upper()) for key, name in left[::2]]
    expected = group_ids([pair for pair in pairs if pair not in left] + new)
    assert regroup_ids(group_ids(pairs), left, new) == expected
