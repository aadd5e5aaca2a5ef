"""The offline extractor: reads what people say, sentence by sentence, by rules. No model, no network, no clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Extraction, Rejection, Window
from afterword.extractors.rules import guards, people, settlements, takebacks, timetables, wishes
from afterword.extractors.rules.making import Speech, applied, bare, erasure, forgotten, made, reversed_of
from afterword.extractors.rules.persons import trimmed
from afterword.extractors.rules.rule import FULL_NAME, NAME, Rule
from afterword.extractors.rules.sentences import HIDDEN, Span, clauses, masked, sentences
from afterword.facts.assertions import Cue, SpeechAct
from afterword.facts.transcripts import Role, Turn

_RULES: tuple[Rule, ...] = (
    *settlements.RETRACTIONS,
    *people.OWN,
    *people.OTHERS,
    *settlements.CHANGES,
    *wishes.RULES_OF_THUMB,
    *wishes.INSTRUCTIONS,
    *wishes.FROM_NOW_ON,
    *settlements.NUMBERED,
    *wishes.LIKES,
    *wishes.HABITS,
    *timetables.SCHEDULES,
    *settlements.DECISIONS,
    *settlements.DESCRIPTIONS,
)
_SENTENCE_RULES = tuple(rule for rule in _RULES if rule.sentence)
_CLAUSE_RULES = tuple(rule for rule in _RULES if not rule.sentence)
_EMBEDDED_RULES = (settlements.USED, *_CLAUSE_RULES, people.RELATION)
_SETTLED = frozenset({"agreed", "decided", "settled", "deal", "ok decided", "all agreed"})
_FULL_NAME = re.compile(FULL_NAME)
_LABELLED = re.compile(rf"(?:^|\n|[Aa]lso )(?P<s>{NAME}): ")
_INTRODUCED = re.compile(rf"\b(?:I'm|I am|name is|this is) (?P<s>{NAME})")
_PRONOUN = re.compile(r"\b(?:he|she)(?P<is>'s| is)?\b", re.IGNORECASE)


class RulesExtractor:
    """Proposes facts by English rules. It finds less than a model does, and seldom what was not said."""

    version = "rules-1"

    async def extract(self, window: Window) -> Extraction:
        """Return what the rules find in the words of people; nothing in other languages, and at no cost."""
        return Extraction(tuple(read(window)))

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:  # noqa: ARG002 - the protocol's
        """Return nothing: a rule that failed would fail again."""
        return Extraction(())


@dataclass(slots=True)
class _Reader:
    """What is known while the turns are read in order: who was named, whether a role is played, what was found."""

    owners: frozenset[str]
    known: set[str] = field(default_factory=set)
    is_playing: bool = False
    found: list[Candidate] = field(default_factory=list)


def read(window: Window) -> list[Candidate]:
    """Return the candidates of a window, in order of saying; what a later sentence of it puts right is left out."""
    reader = _Reader(frozenset(window.owners))
    for turn in _people(window.context):
        _read_turn(turn, reader)
    reader.found.clear()
    for turn in _people(window.turns):
        _read_turn(turn, reader)
    return reader.found


def _people(turns: Iterable[Turn]) -> Iterator[Turn]:
    return (turn for turn in turns if turn.role is Role.HUMAN)


def _read_turn(turn: Turn, reader: _Reader) -> None:
    text = masked(turn.text)
    speech, before = _speech(turn, reader), ""
    for span in sentences(text):
        if "\n\n" in text[max(0, span.start - 3) : span.start]:
            speech = replace(speech, is_correcting=False)
        speech = replace(speech, is_correcting=speech.is_correcting or takebacks.is_correction(span.text))
        was_playing, reader.is_playing = reader.is_playing, guards.role_play_after(span.text, reader.is_playing)
        if not (was_playing or reader.is_playing):
            _drop_denied(span.text, reader)
            for candidate in _candidates(span, text, speech, reader, before):
                _keep(candidate, reader)
        before = span.text


def _speech(turn: Turn, reader: _Reader) -> Speech:
    if turn.speaker in reader.owners:
        return Speech(turn, "the user", "the user", is_owner=True)
    return Speech(turn, turn.speaker[:1].upper() + turn.speaker[1:], "the team", is_owner=False)


def _drop_denied(text: str, reader: _Reader) -> None:
    """Forget what was read with a number that this sentence says is wrong."""
    denied = takebacks.denied_numbers(text)
    if denied:
        reader.found = [one for one in reader.found if not denied & takebacks.numbers(one.statement)]


def _keep(candidate: Candidate, reader: _Reader) -> None:
    """Add a candidate; one that corrects takes the place of what was read about the same slot before."""
    if candidate.cue is Cue.CORRECTION and candidate.act is SpeechAct.STATE:
        slot = (candidate.subject, candidate.attribute)
        reader.found = [one for one in reader.found if (one.subject, one.attribute) != slot]
    reader.found.append(candidate)


def _candidates(span: Span, text: str, speech: Speech, reader: _Reader, before: str) -> Iterator[Candidate]:
    topic = takebacks.erased_topic(span.text, speech.turn.text)
    if topic:
        yield erasure(topic, span, speech)
    elif not guards.is_guarded(takebacks.without_request(span.text)):
        is_settled = before.strip(" .!").lower() in _SETTLED
        yield from _from_sentence(span, text, speech, reader, is_settled=is_settled)


def _from_sentence(span: Span, text: str, speech: Speech, reader: _Reader, *, is_settled: bool) -> Iterator[Candidate]:
    parts = [(clause, takebacks.taken_back(_plain(clause))) for clause in clauses(span) if HIDDEN not in clause.text]
    if not any(back for _, back in parts):
        yield from _relations(span, speech, reader)
        whole = None if HIDDEN in span.text else _first(_SENTENCE_RULES, span, speech)
        if whole:
            yield whole
            return
    for clause, back in parts:
        found = _taken_back(clause, back, speech) if back else None
        if found:
            yield found
        elif back is None or not (back.is_denied or back.act is SpeechAct.ERASE):
            yield from _from_clause(_without_pronoun(clause, text), speech, reader, is_settled=is_settled)


def _plain(clause: Span) -> str:
    return trimmed(clause.text.rstrip("? "))


def _taken_back(clause: Span, back: takebacks.TakeBack, speech: Speech) -> Candidate | None:
    """Return the take-back of what the ordinary rules read in the embedded clause."""
    fact = _first(_EMBEDDED_RULES, replace(clause, text=back.said), speech)
    if fact and fact.act is SpeechAct.STATE:
        return reversed_of(fact, back, _plain(clause), speech)
    return forgotten(back.said, clause, speech) if back.act is SpeechAct.ERASE else None


def _first(rules: Iterable[Rule], span: Span, speech: Speech) -> Candidate | None:
    return next((found for rule in rules if (found := applied(rule, span, speech))), None)


def _from_clause(clause: Span, speech: Speech, reader: _Reader, *, is_settled: bool) -> Iterator[Candidate]:
    taste = people.TASTE.pattern.match(trimmed(clause.text))
    rules = (people.TASTE, *_CLAUSE_RULES) if taste and taste["s"] in reader.known else _CLAUSE_RULES
    found = _first((*rules, settlements.AGREED) if is_settled else rules, clause, speech)
    if found:
        yield found


def _relations(span: Span, speech: Speech, reader: _Reader) -> Iterator[Candidate]:
    for match in people.RELATION.pattern.finditer(span.text):
        name = bare(match["s"])
        if not people.names_someone(name) or name in reader.known:
            continue
        reader.known.add(name)
        found = made(people.RELATION, match, span.part(match.start(), match.end()), speech, is_dated=False)
        if found:
            yield found


def _without_pronoun(clause: Span, text: str) -> Span:
    """Return the clause with "he" or "she" replaced by the one person whom its paragraph has named so far, if any."""
    pronoun = _PRONOUN.search(clause.text)
    if not pronoun:
        return clause
    paragraph = text[max(text.rfind("\n\n", 0, clause.start), clause.start - 1_000, 0) : clause.start]
    named = _named(paragraph)
    if len(named) != 1:
        return clause
    name = named.pop() + (" is" if pronoun["is"] else "")
    return replace(clause, text=clause.text[: pronoun.start()] + name + clause.text[pronoun.end() :])


def _named(paragraph: str) -> set[str]:
    """Return the people whom a paragraph names, its speaker aside; under a heading like "Also Ada:" only her."""
    headed = {match["s"] for match in _LABELLED.finditer(paragraph)}
    related = {bare(match["s"]) for match in people.RELATION.pattern.finditer(paragraph)}
    in_full = {bare(match.group()) for match in _FULL_NAME.finditer(paragraph)}
    own = {match["s"] for match in _INTRODUCED.finditer(paragraph)}
    return {name for name in (headed or related | in_full - own) if people.names_someone(name)}
