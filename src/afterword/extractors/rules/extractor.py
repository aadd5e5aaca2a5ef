"""The offline extractor: applies English rules to what people say, sentence by sentence.

It uses no model, no network and no clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from afterword.extractors.candidates import Candidate
from afterword.extractors.extractor import Extraction, Rejection, Window
from afterword.extractors.rules import decisions, guards, people, preferences, schedules, withdrawals
from afterword.extractors.rules.candidate_builder import (
    Speech,
    apply_rule,
    build_candidate,
    build_erasure,
    build_unread_erasure,
    build_withdrawal,
    without_article,
)
from afterword.extractors.rules.rule import FULL_NAME, NAME, Rule
from afterword.extractors.rules.sentences import HIDDEN, Passage, clauses, hide_passages, sentences
from afterword.extractors.rules.third_person import trimmed
from afterword.facts.assertions import Cue, SpeechAct
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.foreign.stretches import ForeignStretch, foreign_turns

_RULES: tuple[Rule, ...] = (
    *decisions.RETRACTIONS,
    *people.OWN,
    *people.OTHERS,
    *decisions.CHANGES,
    *preferences.RULES_OF_THUMB,
    *preferences.INSTRUCTIONS,
    *preferences.FROM_NOW_ON,
    *decisions.NUMBERED,
    *preferences.LIKES,
    *preferences.HABITS,
    *schedules.SCHEDULES,
    *decisions.DECISIONS,
    *decisions.DESCRIPTIONS,
)
_SENTENCE_RULES = tuple(rule for rule in _RULES if rule.sentence)
_CLAUSE_RULES = tuple(rule for rule in _RULES if not rule.sentence)
_EMBEDDED_RULES = (decisions.USED, *_CLAUSE_RULES, people.RELATION)
_SETTLED = frozenset({"agreed", "decided", "settled", "deal", "ok decided", "all agreed"})
_FULL_NAME = re.compile(FULL_NAME)
_LABELLED = re.compile(rf"(?:^|\n|[Aa]lso )(?P<s>{NAME}): ")
_INTRODUCED = re.compile(rf"\b(?:I'm|I am|name is|this is) (?P<s>{NAME})")
_PRONOUN = re.compile(r"\b(?:he|she)(?P<is>'s| is)?\b", re.IGNORECASE)


class RulesExtractor:
    """Proposes facts by English rules. It finds less than a model does, and seldom proposes what was not said."""

    version = "rules-1"

    async def extract(self, window: Window) -> Extraction:
        """Return the candidates that the rules find in people's turns. It reads English only and costs nothing."""
        return Extraction(tuple(find_candidates(window)))

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:  # noqa: ARG002 - the protocol's
        """Return nothing: a rule that failed would fail again."""
        return Extraction(())


@dataclass(slots=True)
class _Progress:
    """The state while turns are read in order: relations named so far, role play, and the candidates found."""

    owners: frozenset[str]
    relations: set[str] = field(default_factory=set)
    is_role_play: bool = False
    candidates: list[Candidate] = field(default_factory=list)


def find_candidates(window: Window) -> list[Candidate]:
    """Return the candidates of a window in the order in which they were said.

    A candidate that a later sentence of the window corrects is left out.
    """
    progress = _Progress(frozenset(window.owners))
    turns = (*window.context, *window.turns)
    first = len(window.context)
    for index, (turn, stretches) in enumerate(zip(turns, foreign_turns(turns), strict=True)):
        if index == first:
            progress.candidates.clear()
        if turn.role is Role.HUMAN:
            _read_turn(turn, stretches, progress)
    return progress.candidates


def _read_turn(turn: Turn, stretches: Sequence[ForeignStretch], progress: _Progress) -> None:
    text = hide_passages(turn.text, stretches)
    speech, previous = _speech(turn, progress), ""
    for sentence in sentences(text):
        if "\n\n" in text[max(0, sentence.start - 3) : sentence.start]:
            speech = replace(speech, is_correcting=False)
        speech = replace(speech, is_correcting=speech.is_correcting or withdrawals.is_correction(sentence.text))
        was_role_play = progress.is_role_play
        progress.is_role_play = guards.is_role_play_after(sentence.text, was_role_play)
        if not (was_role_play or progress.is_role_play):
            _drop_denied(sentence.text, progress)
            for candidate in _read_sentence(sentence, text, speech, progress, previous):
                _add(candidate, progress)
        previous = sentence.text


def _speech(turn: Turn, progress: _Progress) -> Speech:
    if turn.speaker in progress.owners:
        return Speech(turn, "the user", "the user", is_owner=True)
    return Speech(turn, turn.speaker[:1].upper() + turn.speaker[1:], "the team", is_owner=False)


def _drop_denied(text: str, progress: _Progress) -> None:
    """Drop the candidates with a number that this sentence says is wrong."""
    denied = withdrawals.denied_numbers(text)
    if denied:
        progress.candidates = [
            candidate for candidate in progress.candidates if not denied & withdrawals.numbers(candidate.statement)
        ]


def _add(candidate: Candidate, progress: _Progress) -> None:
    """Add a candidate. A correction replaces the earlier candidates of the same slot."""
    if candidate.cue is Cue.CORRECTION and candidate.act is SpeechAct.STATE:
        slot = (candidate.subject, candidate.attribute)
        progress.candidates = [
            earlier for earlier in progress.candidates if (earlier.subject, earlier.attribute) != slot
        ]
    progress.candidates.append(candidate)


def _read_sentence(
    sentence: Passage, text: str, speech: Speech, progress: _Progress, previous: str
) -> Iterator[Candidate]:
    topic = withdrawals.erased_topic(sentence.text, text)
    if topic:
        yield build_erasure(topic, sentence, speech)
    elif not guards.is_excluded(withdrawals.without_request(sentence.text)):
        is_settled = previous.strip(" .!").lower() in _SETTLED
        yield from _apply_rules(sentence, text, speech, progress, is_settled=is_settled)


def _apply_rules(
    sentence: Passage, text: str, speech: Speech, progress: _Progress, *, is_settled: bool
) -> Iterator[Candidate]:
    parts = [
        (clause, withdrawals.find_withdrawal(_without_lead_and_tail(clause)))
        for clause in clauses(sentence)
        if HIDDEN not in clause.text
    ]
    if not any(withdrawal for _, withdrawal in parts):
        yield from _find_relations(sentence, speech, progress)
        from_sentence = None if HIDDEN in sentence.text else _first_candidate(_SENTENCE_RULES, sentence, speech)
        if from_sentence:
            yield from_sentence
            return
    for clause, withdrawal in parts:
        withdrawn = _read_withdrawal(clause, withdrawal, speech) if withdrawal else None
        if withdrawn:
            yield withdrawn
        elif withdrawal is None or not (withdrawal.is_denied or withdrawal.act is SpeechAct.ERASE):
            yield from _read_clause(_without_pronoun(clause, text), speech, progress, is_settled=is_settled)


def _without_lead_and_tail(clause: Passage) -> str:
    return trimmed(clause.text.rstrip("? "))


def _read_withdrawal(clause: Passage, withdrawal: withdrawals.WithdrawnClaim, speech: Speech) -> Candidate | None:
    """Return the withdrawal of what the ordinary rules find in the embedded clause."""
    stated = _first_candidate(_EMBEDDED_RULES, replace(clause, text=withdrawal.claim), speech)
    if stated and stated.act is SpeechAct.STATE:
        return build_withdrawal(stated, withdrawal, _without_lead_and_tail(clause), speech)
    return build_unread_erasure(withdrawal.claim, clause, speech) if withdrawal.act is SpeechAct.ERASE else None


def _first_candidate(rules: Iterable[Rule], passage: Passage, speech: Speech) -> Candidate | None:
    return next((candidate for rule in rules if (candidate := apply_rule(rule, passage, speech))), None)


def _read_clause(clause: Passage, speech: Speech, progress: _Progress, *, is_settled: bool) -> Iterator[Candidate]:
    taste = people.TASTE.pattern.match(trimmed(clause.text))
    rules = (people.TASTE, *_CLAUSE_RULES) if taste and taste["s"] in progress.relations else _CLAUSE_RULES
    candidate = _first_candidate((*rules, decisions.AGREED) if is_settled else rules, clause, speech)
    if candidate:
        yield candidate


def _find_relations(sentence: Passage, speech: Speech, progress: _Progress) -> Iterator[Candidate]:
    for match in people.RELATION.pattern.finditer(sentence.text):
        name = without_article(match["s"])
        if not people.is_plausible_name(name) or name in progress.relations:
            continue
        progress.relations.add(name)
        quoted = sentence.part(match.start(), match.end())
        candidate = build_candidate(people.RELATION, match, quoted, speech, is_dated=False)
        if candidate:
            yield candidate


def _without_pronoun(clause: Passage, text: str) -> Passage:
    """Replace "he" or "she" by the one person whom the paragraph has named so far, if there is exactly one."""
    pronoun = _PRONOUN.search(clause.text)
    if not pronoun:
        return clause
    paragraph = text[max(text.rfind("\n\n", 0, clause.start), clause.start - 1_000, 0) : clause.start]
    named = _people_named(paragraph)
    if len(named) != 1:
        return clause
    name = named.pop() + (" is" if pronoun["is"] else "")
    return replace(clause, text=clause.text[: pronoun.start()] + name + clause.text[pronoun.end() :])


def _people_named(paragraph: str) -> set[str]:
    """Return the people whom a paragraph names, except its speaker; under a heading like "Also Ada:" only Ada."""
    headed = {match["s"] for match in _LABELLED.finditer(paragraph)}
    related = {without_article(match["s"]) for match in people.RELATION.pattern.finditer(paragraph)}
    in_full = {without_article(match.group()) for match in _FULL_NAME.finditer(paragraph)}
    own = {match["s"] for match in _INTRODUCED.finditer(paragraph)}
    return {name for name in (headed or related | in_full - own) if people.is_plausible_name(name)}
