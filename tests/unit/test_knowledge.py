"""Knowledge: deriving only what a change affects gives the same facts as deriving everything anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.facts import knowledge
from afterword.facts.assertions import PERSON, Assertion, Kind, Relation, SpeechAct, Verdict
from afterword.facts.knowledge import Knowledge
from afterword.facts.persistent_map import SHARED_IDS, PersistentMap, group_ids, regroup_ids
from afterword.facts.scopes import Scope
from afterword.facts.subjects import SubjectNames
from afterword.facts.validity import neighbourhood
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.validity.timeline import fact_histories, histories_of_pairs
from afterword.pipeline.resolution import required_pairs
from afterword.store.database.cache import KnowledgeCache, UncommittedCache
from histories import LENA, Book, Digits, Dump, History, Judge, Told, day, dumped, histories, holds_for, statement

NAMES = ("user", "Jan", "Jan Petrik", "jan petrik", "Jan Oduya", "Petrik", "Jan Oduya Lang", "the launch")


def with_drawn_subject(assertion: Assertion) -> Assertion:
    """Return the statement about one of a few people, of whom several share a name."""
    return replace(assertion, subject=Digits(Judge(7).drawn(assertion.id)).pick(NAMES))


class NameJudge(Judge):
    """A judge who often finds that two names are one person, and sometimes that they are two."""

    def verdict(self, earlier: Assertion, later: Assertion) -> Verdict | None:
        digits = Digits(self.drawn("names", earlier.id, later.id))
        verdict = super().verdict(earlier, later)
        if digits.pick((True, False, False)):
            relation = digits.pick((Relation.SAME, Relation.BESIDE, Relation.CHANGES))
            judge = digits.pick((self.version, self.version, PERSON))
            verdict = verdict or Verdict(earlier.id, later.id, relation, "as drawn", judge)
            joins, parts = digits.pick((True, False)), digits.pick((False, True))
            return replace(verdict, joins_subjects=joins, parts_subjects=parts)
        return verdict


def with_names(history: History) -> History:
    sessions = (
        Told(session.id, tuple(map(with_drawn_subject, session.whole)), tuple(map(with_drawn_subject, session.early)))
        for session in history.sessions
    )
    return replace(history, sessions=tuple(sessions))


@dataclass
class Incremental:
    """The knowledge and the fact histories of a book, updated after each step only where something has changed."""

    known: Knowledge
    histories: dict[str, FactHistory]

    def follow(self, book: Book) -> None:
        before, live = self.known, {assertion.id: assertion for assertion in book.assertions}
        verdicts = {(*verdict.pair, verdict.judge): verdict for verdict in book.verdicts}
        old_verdicts = {(*verdict.pair, verdict.judge): verdict for verdict in before.verdicts}
        removed = [assertion for assertion in before.assertions if assertion.id not in live]
        added = [assertion for assertion in live.values() if assertion.id not in before.by_id]
        removed_verdicts = [verdict for key, verdict in old_verdicts.items() if key not in verdicts]
        added_verdicts = [verdict for key, verdict in verdicts.items() if old_verdicts.get(key) != verdict]
        self.known = before.revised(
            before.revision + 1,
            removed=removed,
            added=added,
            removed_verdicts=removed_verdicts,
            added_verdicts=added_verdicts,
        )
        ends = [end for verdict in (*removed_verdicts, *added_verdicts) for end in verdict.pair]
        changed_ids = [*(assertion.id for assertion in (*removed, *added)), *ends]
        affected = self.known.affected_ids(before, changed_ids)
        for history in list(self.histories.values()):
            if affected & {assertion.id for assertion in history.members}:
                del self.histories[history.id]
        updated = histories_of_pairs(self.known.judged_pairs(affected), affected)
        self.histories.update((history.id, history) for history in updated)


def dumped_with_people(fact_histories: Iterable[FactHistory]) -> Dump:
    return sorted((*row, history.may_be) for history in fact_histories for row in dumped([history]))


def an_update_gives_what_a_full_derivation_gives(history: History) -> None:
    """After each step the updated fact histories are those of all live assertions and verdicts, derived at once."""
    book, incremental = Book(history.judge), Incremental(Knowledge.of(0, (), ()), {})
    _ = incremental.known.index

    def compare() -> None:
        incremental.follow(book)
        derived = fact_histories(book.assertions, book.verdicts)
        assert dumped_with_people(incremental.histories.values()) == dumped_with_people(derived)
        everything, anew = incremental.known.assertions, Knowledge.of(0, book.assertions, book.verdicts)
        assert required_pairs(everything, incremental.known) == required_pairs(everything, anew)

    history.happen(book, undos=True, seen=compare)


FORMER_NAMES = (None, None, "Jan", "Petrik", "Jan Petrik", "Jan Oduya", "the launch", "the start")


def with_former_names(history: History) -> History:
    """Return the history of people who share names, in which one statement in two says what its subject was called."""

    def renaming(statements: Iterable[Assertion]) -> tuple[Assertion, ...]:
        return tuple(
            replace(each, former_name=Digits(Judge(9).drawn(each.id)).pick(FORMER_NAMES)) for each in statements
        )

    sessions = (Told(told.id, renaming(told.whole), renaming(told.early)) for told in with_names(history).sessions)
    return replace(history, sessions=tuple(sessions))


class SparseJudge(Judge):
    """A judge that relates few of the pairs, mostly as changes, so that long chains are judged link by link."""

    def verdict(self, earlier: Assertion, later: Assertion) -> Verdict | None:
        draw = self.drawn("relation", earlier.id, later.id)
        if earlier.act is not SpeechAct.STATE or draw % 5:
            return None
        changes = Relation.CHANGES if later.act is SpeechAct.STATE else Relation.RETRACTS
        relations = (changes, changes, Relation.RETRACTS, Relation.CORRECTS, Relation.SAME)
        return Verdict(earlier.id, later.id, relations[draw // 5 % 5], "as drawn", self.version)


def with_one_slot(history: History) -> History:
    """Return the history with every statement about one slot."""

    def moved(statements: Iterable[Assertion]) -> tuple[Assertion, ...]:
        return tuple(replace(each, kind=Kind.ENTITY, subject="user", attribute="home") for each in statements)

    sessions = (Told(session.id, moved(session.whole), moved(session.early)) for session in history.sessions)
    return replace(history, sessions=tuple(sessions))


PLAIN, NAMED = histories(Judge), histories(NameJudge).map(with_names)
CHAINED, RENAMED = histories(SparseJudge, 12).map(with_one_slot), histories(NameJudge).map(with_former_names)


@pytest.mark.parametrize("share", [pytest.param(1, id="ci"), pytest.param(20, id="soak", marks=pytest.mark.soak)])
@pytest.mark.parametrize("drawn", [PLAIN, NAMED, CHAINED, RENAMED], ids=["plain", "named", "chained", "renamed"])
def test_a_step_changes_nothing_beyond_the_affected_ids(drawn: st.SearchStrategy[History], share: int) -> None:
    """Read, grown and undone, with joins, parts and a person's decisions among people who share names."""
    holds_for(30 * share, drawn, an_update_gives_what_a_full_derivation_gives)


def names_never_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SubjectNames, "changed_labels", lambda *_: set())


def former_connections_are_ignored(patch: pytest.MonkeyPatch) -> None:
    affected_ids = neighbourhood.affected_ids
    patch.setattr(knowledge, "affected_ids", lambda _before, after, *ids: affected_ids(after, after, *ids))


def only_the_changed_ids(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(knowledge, "affected_ids", lambda _before, _after, ids, _renamed: set(ids))


def nothing_loses_its_effect(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(neighbourhood, "_may_lose_effect", lambda *_: False)


def only_judged_neighbours_are_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(neighbourhood, "_binds_statements", lambda verdict: verdict.relation is Relation.SAME)


@pytest.mark.parametrize(
    ("plant", "drawn"),
    [
        (names_never_change, NAMED),
        (former_connections_are_ignored, NAMED),
        (only_the_changed_ids, NAMED),
        (nothing_loses_its_effect, CHAINED),
        (only_judged_neighbours_are_read, CHAINED),
    ],
)
def test_affecting_too_few_ids_is_noticed(
    plant: Callable[[pytest.MonkeyPatch], None], drawn: st.SearchStrategy[History], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        holds_for(240, drawn, an_update_gives_what_a_full_derivation_gives, is_fixed=True)


def test_a_change_that_was_called_off_stays_without_effect_where_only_its_neighbours_are_derived() -> None:
    graz, oslo, called_off, later = (statement(0, f"s{number}", 1, number) for number in range(4))
    oslo = replace(oslo, valid_from=day(9))
    called_off = replace(called_off, act=SpeechAct.RETRACT)
    verdicts = [
        Verdict(graz.id, oslo.id, Relation.CHANGES, "he moves", "test"),
        Verdict(oslo.id, called_off.id, Relation.RETRACTS, "he does not move", "test"),
        Verdict(graz.id, later.id, Relation.SAME, "he stays", "test"),
    ]
    known = Knowledge.of(1, (graz, oslo, called_off, later), verdicts)
    ids = {graz.id, later.id}
    expected = fact_histories(known.assertions, known.verdicts)[:1]
    assert histories_of_pairs(known.judged_pairs(ids), ids) == expected
    assert expected[0].spans[0].end is None


def knowledge_of(revision: int, *numbers: int) -> Knowledge:
    return Knowledge.of(revision, [statement(0, f"s{number}", 1, number) for number in numbers], ())


def test_others_see_what_a_transaction_has_found_out_once_it_is_committed() -> None:
    cache = KnowledgeCache()
    in_transaction, after = UncommittedCache(cache), knowledge_of(1, 1)
    in_transaction.keep(LENA, (1, ""), after)
    assert (in_transaction.find(LENA, (1, "")), UncommittedCache(cache).find(LENA, (1, ""))) == (after, None)
    in_transaction.commit()
    assert UncommittedCache(cache).find(LENA, (1, "")) is after
    assert UncommittedCache(cache).find(LENA, (2, "")) is None


def test_what_was_used_least_lately_is_let_go_first() -> None:
    cache, scopes = KnowledgeCache(max_assertions=4), [Scope.user(name) for name in "abc"]
    for scope in scopes[:2]:
        cache.keep(scope, (1, ""), knowledge_of(1, 1, 2))
    assert cache.find(scopes[0], (1, ""))
    cache.keep(scopes[2], (1, ""), knowledge_of(1, 1))
    assert [cache.find(scope, (1, "")) is not None for scope in scopes] == [True, False, True]
    cache.keep(scopes[1], (2, ""), knowledge_of(2, *range(9)))
    assert cache.find(scopes[1], (2, "")), "one that is too large is held alone"
    assert cache.find(scopes[0], (1, "")) is None


@given(st.lists(st.dictionaries(st.integers(0, 9), st.none() | st.integers(1, 9)), max_size=6), st.integers(0, 4))
def test_a_persistent_map_equals_a_dict_with_the_same_changes(changes: list[dict[int, int | None]], most: int) -> None:
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
def test_regrouping_equals_grouping_anew(pairs: list[tuple[int, str]], draws: st.DataObject) -> None:
    removed = draws.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    added = [(key, name.upper()) for key, name in removed[::2]]
    expected = group_ids([pair for pair in pairs if pair not in removed] + added)
    assert regroup_ids(group_ids(pairs), removed, added) == expected


def test_a_large_group_of_ids_grows_without_being_copied() -> None:
    groups = group_ids(("user", str(number)) for number in range(3 * SHARED_IDS))
    expected = [str(number) for number in range(3 * SHARED_IDS)]
    for number in range(SHARED_IDS + 5):
        before = groups["user"]
        groups = regroup_ids(groups, (), [("user", f"new {number}")])
        expected.append(f"new {number}")
        assert list(before) == expected[:-1], "an earlier version stays as it was"
    assert list(groups["user"]) == expected
    assert (len(groups["user"]), groups["user"][-1]) == (len(expected), expected[-1])
    groups = regroup_ids(groups, [("user", "7")], [("user", "last")])
    assert list(groups["user"]) == [id_ for id_ in expected if id_ != "7"] + ["last"]
    assert "user" not in regroup_ids(groups, [("user", id_) for id_ in groups["user"]], ())
