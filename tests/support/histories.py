"""Random histories of sessions, a judge that is a function, and a store that is a list: what the property tests share.

A history is what is said (sessions), how it relates (a judge), and what happens (moves): sessions arrive in any order,
grow, and are undone; a person decides on pairs. The book keeps the runs of it as the store does, in memory and without
a line of the store's code, and asks the real code for the facts.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.internal.cache import LRUCache
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.vendor.pretty import RepresentationPrinter

from afterword.facts.assertions import (
    PERSON,
    Assertion,
    Authority,
    Cue,
    Evidence,
    EvidenceKind,
    Extent,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
)
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.validity import timeline
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.words import folded
from afterword.pipeline.resolution import comparison_partners, required_pairs

T = TypeVar("T")
Pair = tuple[Assertion, Assertion]
Pairing = Callable[[Sequence[Assertion], Sequence[Assertion]], Iterable[Pair]]
Dump = list[tuple[object, ...]]

LENA = Scope.user("lena")
SLOTS = (
    (Kind.ENTITY, "user", "home"),
    (Kind.PREFERENCE, "user", "seat"),
    (Kind.ENTITY, "Tom", "home"),
    (Kind.DECISION, "launch", "date"),
    (Kind.PREFERENCE, "tom", "seat"),
)
VALUES = ("alder", "birch", "Birch", "cedar")
SPEAKERS = (
    *[("user", Authority.STATED)] * 6,
    ("tom", Authority.STATED),
    ("user", Authority.APPLICATION),
    ("scout", Authority.AGENT),
)
LARGEST = 2**32
LAST_DAY = 24


def day(number: int) -> datetime:
    """Return midnight of the n-th day of the histories; sessions lie in days 0 to 11, validities in -9 to 22."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


class Digits:
    """A number read as choices, one after the other: 0 is the plainest statement, and hypothesis shrinks towards it."""

    def __init__(self, number: int) -> None:
        self.left = number

    def pick(self, choices: Sequence[T]) -> T:
        """Return the next choice."""
        self.left, place = divmod(self.left, len(choices))
        return choices[place]


@dataclass(frozen=True, slots=True)
class Told:
    """A session: its statements as read to its end, and each as it is read where the session ends with it so far."""

    id: str
    whole: tuple[Assertion, ...]
    early: tuple[Assertion, ...]

    def read(self, length: int) -> tuple[Assertion, ...]:
        """Return what is read of the first `length` statements: of the last one perhaps something else."""
        if length == len(self.whole):
            return self.whole
        return (*self.whole[: length - 1], self.early[length - 1])


def statement(number: int, session_id: str, turn: int, on: int, *, guessed: bool = False) -> Assertion:
    """Return the statement that a number stands for, said in that turn on that day."""
    digits = Digits(number)
    value = digits.pick(VALUES)
    kind, subject, attribute = digits.pick(SLOTS)
    act = digits.pick((*[SpeechAct.STATE] * 9, *[SpeechAct.RETRACT] * 3, SpeechAct.ERASE))
    since = digits.pick((None, None, None, None, -9, 0, 5))
    until = digits.pick((None, None, None, None, 0, 2, 11))
    speaker, authority = digits.pick(SPEAKERS)
    limited_to = digits.pick((None, None, None, None, None, "the parser"))
    cue = digits.pick((None, None, None, Cue.CHANGE, Cue.CORRECTION))
    if act is not SpeechAct.STATE:
        value = digits.pick((value, ""))
    first_day = None if since is None else day(on + since)
    last_day = None if until is None else day(on + max(until, since or 0))
    named_days = "".join(f", {name} {at.day}" for name, at in (("from", first_day), ("until", last_day)) if at)
    return Assertion(
        id=f"{session_id}.{turn}.{number}",
        scope=LENA,
        session_id=session_id,
        act=act,
        kind=kind,
        subject=subject,
        attribute=attribute,
        value=value,
        statement=f"The {attribute} of {subject}: {value}{named_days}.",
        speaker=speaker,
        authority=authority,
        said_at=day(on),
        evidence=(Evidence(EvidenceKind.TURN, value or "no more", session_id, turn, speaker),),
        time_is_guess=guessed,
        valid_from=first_day,
        valid_to=last_day,
        cue=cue,
        limited_to=limited_to,
    )


@st.composite
def sessions(draw: st.DrawFn, number: int) -> Told:
    """Draw a session of 1 to 3 statements on one of 12 days, so that several share a day."""
    on, guess = draw(st.integers(0, 11)), draw(st.integers(0, 5))
    numbers = draw(st.lists(st.integers(0, LARGEST), min_size=1, max_size=3))
    said = partial(statement, session_id=f"s{number}", on=on, guessed=guess == 5)
    whole = tuple(said(one, turn=turn) for turn, one in enumerate(numbers, 1))
    # Every other statement is understood otherwise as long as nothing follows it.
    early = tuple(said(one ^ 1 if one % 3 else one, turn=turn) for turn, one in enumerate(numbers, 1))
    return Told(f"s{number}", whole, early)


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge whose verdict is a function of the pair alone, drawn by a seed: of `same`, `narrows` and so on, any."""

    seed: int

    version = "drawn-1"

    def verdict(self, earlier: Assertion, later: Assertion) -> Verdict | None:
        """Return the verdict on a pair, None where it says nothing. A retraction is never judged as the earlier."""
        draw = self.drawn(earlier.id, later.id)
        if earlier.act is not SpeechAct.STATE or (earlier.slot != later.slot and draw % 11):
            return None
        relation = (*Relation, Relation.SAME, None)[draw // 11 % 10]
        if later.act is not SpeechAct.STATE and draw % 3:
            relation = Relation.RETRACTS
        who = PERSON if draw // 97 % 13 == 0 else self.version
        joins = earlier.slot[0] != later.slot[0] and draw % 2 == 0
        is_parted = earlier.slot[0] == later.slot[0] != "user" and relation is Relation.BESIDE and draw % 2 == 0
        if relation is None:
            return None
        extent = (None, None, *Extent)[self.drawn("extent", earlier.id, later.id) % 4]
        return Verdict(
            *(earlier.id, later.id, relation, "as drawn", who, joins, is_parted, extent),
            remainder=self._remainder(earlier, later, relation),
        )

    def _remainder(self, earlier: Assertion, later: Assertion, relation: Relation) -> str | None:
        """Return what is left of the earlier sentence, for one change or correction in three."""
        is_partial = relation in (Relation.CHANGES, Relation.CORRECTS) and later.act is SpeechAct.STATE
        if not is_partial or self.drawn("remainder", earlier.id, later.id) % 3:
            return None
        return f"The {earlier.attribute} of {earlier.subject}."

    def drawn(self, *parts: object) -> int:
        """Return a number that these parts always get."""
        return zlib.crc32(repr((self.seed, *parts)).encode())


class CoherentJudge(Judge):
    """A judge to whom equal words are the same, whoever says them when, and two values exclude each other or do not.

    It never corrects or narrows: what these do depends on which of several restatements they were compared with.
    """

    def verdict(self, earlier: Assertion, later: Assertion) -> Verdict | None:
        """Return the verdict on a pair by what the two say, None where it says nothing."""
        one, other = _content(earlier), _content(later)
        if earlier.act is not SpeechAct.STATE or earlier.slot != later.slot:
            return None
        relation: Relation | None = Relation.RETRACTS
        if later.act is SpeechAct.STATE:
            options = (Relation.CHANGES, Relation.CHANGES, Relation.BESIDE, None)
            relation = Relation.SAME if one == other else options[self.drawn(*sorted((repr(one), repr(other)))) % 4]
        elif folded(later.value) not in ("", folded(earlier.value)):
            relation = None
        return Verdict(earlier.id, later.id, relation, "as drawn", self.version) if relation else None


class CorrectingJudge(CoherentJudge):
    """A coherent judge that corrects as well: across sessions a value that was wrong, within a session a slip."""

    def verdict(self, earlier: Assertion, later: Assertion) -> Verdict | None:
        """Return the verdict on a pair, where a change may be a correction."""
        verdict = super().verdict(earlier, later)
        if verdict is None or verdict.relation is not Relation.CHANGES:
            return verdict
        is_slip = earlier.session_id == later.session_id
        corrects = is_slip or self.drawn("corrects", repr(_content(earlier)), repr(_content(later))) % 2
        return replace(verdict, relation=Relation.CORRECTS) if corrects else verdict


def _content(one: Assertion) -> tuple[object, ...]:
    return one.act, one.slot, folded(one.value), one.limited_to, one.valid_from, one.valid_to


def every_pair(new: Sequence[Assertion], known: Sequence[Assertion]) -> list[Pair]:
    """Return every pair that holds something new: (earlier-said, later-said)."""
    others = [one for one in known if one.id not in {each.id for each in new}]
    pairs = [(one, other) for place, one in enumerate(new) for other in (*new[:place], *others)]
    return [(one, other) if one.order < other.order else (other, one) for one, other in pairs]


def pairs_of(new: Sequence[Assertion], known: Sequence[Assertion]) -> list[Pair]:
    """Return the pairs that the code requires, where nothing has been judged before."""
    return required_pairs(new, Knowledge.of(0, (*known, *new), ()))


@dataclass(slots=True)
class Run:
    """One reading of one source, and the verdicts that it stands on."""

    source: str
    length: int
    assertions: tuple[Assertion, ...]
    verdicts: tuple[Verdict, ...]
    counts: bool = True


@dataclass
class Book:
    """The runs of one scope in the order of arrival: of each source, the latest that was not undone counts.

    What is new is judged against every reading that an undo could bring back, or (`meets_all` False) against what
    counts alone.
    """

    judge: Judge
    pairing: Pairing = every_pair
    runs: list[Run] = field(default_factory=list)
    meets_all: bool = True

    def live(self) -> list[Run]:
        """Return the runs that count."""
        return list({run.source: run for run in self.runs if run.counts}.values())

    def read(self, told: Told, length: int) -> Run | None:
        """Read the first statements of a session, unless its last run has read just that; return the run."""
        last = next((run for run in reversed(self.runs) if run.source == told.id), None)
        if last is not None and last.length == length:
            return None
        said = told.read(length)
        pool = [run for run in self.runs if run.counts] if self.meets_all else self.live()
        known = {one.id: one for run in pool for one in run.assertions if run.source != told.id}
        found = (self.judge.verdict(*pair) for pair in self.pairing(said, list(known.values())))
        run = Run(told.id, length, said, tuple(verdict for verdict in found if verdict))
        self.runs.append(run)
        return run

    def undo(self, run: Run) -> None:
        """Undo a run, and compare what was compared with it alone with the next statements, as the store does."""
        before = Knowledge.of(0, self.assertions, self.verdicts)
        run.counts = False
        after = Knowledge.of(1, self.assertions, self.verdicts)
        partners = comparison_partners([one for one in run.assertions if one.id not in after.by_id], before)
        pairs = required_pairs((), after, compared_before=[one for one in partners if one.id in after.by_id])
        judged = {verdict.pair for verdict in after.verdicts}
        found = (self.judge.verdict(*pair) for pair in pairs if (pair[0].id, pair[1].id) not in judged)
        self.runs.append(Run(f"closing {run.source}", 0, (), tuple(verdict for verdict in found if verdict)))

    @property
    def assertions(self) -> list[Assertion]:
        """What counts."""
        return [one for run in self.live() for one in run.assertions]

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts that count."""
        return [one for run in self.live() for one in run.verdicts]

    def courses(self) -> list[FactHistory]:
        """Return the facts through all time."""
        return timeline.fact_histories(self.assertions, self.verdicts)

    def dump(self) -> Dump:
        """Return the facts through all time, for comparison."""
        return dumped(self.courses())


def told_briefly(one: Assertion) -> str:
    """Return an assertion on one line."""
    days = [None if at is None else (at - day(0)).days for at in (one.said_at, one.valid_from, one.valid_to)]
    marks = f"{one.speaker} {one.authority.name}{' guessed' if one.time_is_guess else ''} {one.limited_to or ''}"
    return f"{one.id}: {one.act} {'/'.join(one.slot)}={one.value!r} said {days[0]} valid {days[1]}..{days[2]} {marks}"


def dumped(courses: Iterable[FactHistory]) -> Dump:
    """Return all that a course holds, in an order of its own."""
    return sorted(
        (
            *(one.id, one.lead.id, tuple(each.id for each in one.members), one.spans),
            *(one.undone_as, one.undone_by, one.contested_by, one.exceptions, one.rewordings),
        )
        for one in courses
    )


@dataclass(frozen=True, slots=True)
class History:
    """What is said, by which judge it is related, and numbers that stand for what happens to it."""

    sessions: tuple[Told, ...]
    judge: Judge
    moves: tuple[int, ...]

    def __repr__(self) -> str:
        """Show the statements and verdicts in short, for whoever has to understand a failure."""
        lines = [told_briefly(one) for told in self.sessions for one in told.whole]
        found = (
            self.judge.verdict(*pair) for pair in every_pair([one for told in self.sessions for one in told.whole], ())
        )
        lines += [f"{one.earlier_id} <- {one.later_id}: {one.relation} by {one.judge}" for one in found if one]
        return "\n  ".join(("a history", *lines, f"moves {self.moves}"))

    def _repr_pretty_(self, printer: RepresentationPrinter, _is_cycle: bool) -> None:
        printer.text(repr(self))

    def shuffled(self) -> list[Told]:
        """Return the sessions in the order in which they arrive."""
        return sorted(self.sessions, key=lambda told: self.judge.drawn("order", told.id, self.moves))

    def at_once(self, lengths: dict[str, int] | None = None, pairing: Pairing = every_pair) -> Book:
        """Return the book after every session (of `lengths`, those) was read once, in the order of saying."""
        book = Book(self.judge, pairing)
        for told in sorted(self.sessions, key=lambda told: told.whole[0].order):
            if lengths is None or told.id in lengths:
                book.read(told, len(told.whole) if lengths is None else lengths[told.id])
        return book

    def happen(self, book: Book, *, undos: bool, redos: bool = False, seen: Callable[[], None] = lambda: None) -> None:
        """Let the moves happen: sessions are read and grow, and (with `undos`) one move in four undoes a run.

        With `redos` half of these redo an undone run instead, if there is one. `seen` is called after each.
        """
        lengths: dict[str, int] = {}
        for move in self.moves:
            digits = Digits(move)
            undoes = digits.pick((False, False, False, True))
            counting = [run for run in book.runs if run.counts]
            undone = [run for run in book.runs if not run.counts]
            if undoes and redos and undone and digits.pick((False, True)):
                digits.pick(undone).counts = True
            elif undoes and undos and counting:
                digits.pick(counting).counts = False
            else:
                told = digits.pick(self.sessions)
                least = lengths.get(told.id, 0) + 1
                if least <= len(told.whole):
                    lengths[told.id] = digits.pick(range(least, len(told.whole) + 1))
                    book.read(told, lengths[told.id])
            seen()


@st.composite
def moved_plans(draw: st.DrawFn) -> tuple[list[Assertion], list[Verdict]]:
    """Draw three statements of the owner that name days, and verdicts by which each changes a part of those before."""
    days = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 9), st.integers(0, 9)), min_size=3, max_size=3))
    said = [
        replace(
            statement(0, f"s{number}", 1, on),
            value=VALUES[number],
            statement=f"The home of user: {VALUES[number]}, {day(on + since).day} to {day(on + since + length).day}.",
            valid_from=draw(st.sampled_from((day(on + since), None))),
            valid_to=draw(st.sampled_from((day(on + since + length), None))),
        )
        for number, (on, since, length) in enumerate(sorted(days))
    ]
    relations, extents = st.sampled_from((Relation.CHANGES, Relation.CORRECTS)), st.sampled_from((None, *Extent))
    remainders = st.sampled_from(("The home of user.", None))
    pairs = [(earlier, later) for place, later in enumerate(said) for earlier in said[:place]]
    return said, [
        Verdict(
            *(earlier.id, later.id, draw(relations), "as drawn", "drawn-1"),
            extent=draw(extents),
            remainder=draw(remainders),
        )
        for earlier, later in pairs
    ]


@st.composite
def histories(
    draw: st.DrawFn, judges: Callable[[int], Judge] = Judge, least: int = 8, *, is_trusted: bool = False
) -> History:
    """Draw a history of `least` sessions or a few more, over 5 slots; with `is_trusted`, all of it the owner's own
    words at certain times, so that no retirement is refused."""
    count = draw(st.integers(least, least + 2))
    said = tuple(draw(sessions(number)) for number in range(count))
    if is_trusted:
        said = tuple(Told(told.id, _trusted(told.whole), _trusted(told.early)) for told in said)
    moves = draw(st.lists(st.integers(0, LARGEST), min_size=2 * least, max_size=3 * least))
    return History(said, judges(draw(st.integers(0, LARGEST))), tuple(moves))


def _trusted(said: Iterable[Assertion]) -> tuple[Assertion, ...]:
    return tuple(replace(one, speaker="user", authority=Authority.STATED, time_is_guess=False) for one in said)


def holds_for(
    examples: int, drawn: st.SearchStrategy[T], check: Callable[[T], object], *, is_fixed: bool = False
) -> None:
    """Run a check on so many drawn examples.

    Outside of `make soak` they are the same in each run, whatever was tested before. With `is_fixed` they are the same
    there too, and not made smaller.
    """
    phases = (Phase.generate,) if is_fixed else (Phase.generate, Phase.shrink)
    within = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=is_fixed or settings().derandomize,
        phases=phases,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )

    def checked(example: T) -> None:
        check(example)

    with pytest.MonkeyPatch.context() as patch:
        if within.derandomize:
            # Hypothesis also draws constants of all test modules that are loaded, which depend on what ran before.
            patch.setattr(providers, "_get_local_constants", Constants)
            patch.setattr(providers, "CONSTANTS_CACHE", LRUCache(1024))
        within(given(drawn)(checked))()
