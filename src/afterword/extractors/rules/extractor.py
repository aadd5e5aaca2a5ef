"""The offline extractor and judge. The extractor applies a small English grammar to plain clauses of people.

It uses no model, no network and no clock. A clause that the grammar does not fully understand gives no candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Extraction, Rejection, Usage, Window
from afterword.extractors.judge import Pair
from afterword.extractors.rules import phrases, withdrawals
from afterword.extractors.rules.dates import ALWAYS, Validity, past_day, split_days
from afterword.extractors.rules.grammar import ClauseClaim, read_clause
from afterword.extractors.rules.phrases import Clause, with_subject, without_lead, without_tails
from afterword.extractors.rules.vocabulary import MONTHS, SHARED_VERB, attribute_of_phrase
from afterword.extractors.slot_relation import RELATION_VERSION, relation
from afterword.facts.assertions import EVERYTHING, Cue, Kind, SpeechAct, Verdict
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.foreign.stretches import foreign_stretches_by_turn

_JOKING = re.compile(
    r"[;:]-?[)DP](?!\w)|[\U0001F300-\U0001FAFF]|(?i:\b(?:haha\w*|lol|xd|just kidding|jk)\b)|/s$|"
    r"^(?i:(?:oh|yeah|yes|sure|right|wow)\b[\w ,]{0,8}\bI (?:just|so|simply|totally|absolutely) (?:love|adore|enjoy)\b)"
)
_TAKEN_AS_JOKE = re.compile(
    r"(?i)\b(?:just kidding|I'm (?:just |only )?(?:kidding|joking)|(?:only|just) joking|not really)\b"
)
_CONTINUES = re.compile(rf"(?i)(?:(?:also|now|always|never|usually|don't|can't) )?{SHARED_VERB} ")
_HAPPENED = re.compile(r"(?:have )?(?!need)(?:\w+ed|bought|sold|won|went|ran|took|got|had|built|flew|been|was)\b")
_AT_AN_HOUR = re.compile(r"(?i) at \d{1,2}(?:[:.]\d\d)?(?: ?[ap]m)?$")
_MONTH_OR_NUMBER = re.compile(rf"(?i)\d|\b{MONTHS}\b")
_ADDS_NOTHING = re.compile(r"(?i)that's (?:over|all)|thanks|thank you|(?:I|we) (?:have|need) to [\w' ]+")


class RulesExtractor:
    """Proposes facts by English rules. It finds fewer facts than a model, and seldom one that nobody stated."""

    version = "rules-4"

    async def extract(self, window: Window) -> Extraction:
        """Return the candidates that the rules find in people's turns. Only English is read, and nothing is spent."""
        return Extraction(tuple(find_candidates(window)))

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:  # noqa: ARG002 - the protocol's
        """Return no candidates, because the same rules would give the same candidates again."""
        return Extraction(())


class RulesJudge:
    """Judges pairs of assertions by subject, attribute and value. A pair that these do not decide gets no verdict."""

    version = RELATION_VERSION
    pairs_a_call = None

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        """Return the verdicts that subject, attribute and value decide, and an empty usage."""
        related = ((pair, relation(*pair)) for pair in pairs)
        return [Verdict(pair[0].id, pair[1].id, *why, self.version) for pair, why in related if why], Usage()


@dataclass(frozen=True, slots=True)
class _Speech:
    """The words of a turn that are read, and the names of the speaker (`who`) and the speaker's group in statements."""

    turn: Turn
    quote: str
    who: str
    group: str


def find_candidates(window: Window) -> list[Candidate]:
    """Return the candidates of a window in the order of saying. Those that a later sentence corrects are left out."""
    candidates: list[Candidate] = []
    turns = (*window.context, *window.turns)
    for turn, stretches in list(zip(turns, foreign_stretches_by_turn(turns), strict=True))[len(window.context) :]:
        if turn.role is not Role.HUMAN:
            continue
        name = turn.speaker[:1].upper() + turn.speaker[1:]
        speech = _Speech(turn, "", *(("the user", "the user") if turn.speaker in window.owners else (name, "the team")))
        words = phrases.own_words(turn.text, stretches)
        for sentence in () if _TAKEN_AS_JOKE.search(words) else phrases.sentences(words):
            candidates += _read_sentence(sentence.removeprefix(f"{name}: "), speech)
    slots = [(candidate.subject, candidate.attribute) for candidate in candidates]
    last_corrections = {
        slot: place
        for place, (slot, candidate) in enumerate(zip(slots, candidates, strict=True))
        if candidate.cue is Cue.CORRECTION and candidate.act is SpeechAct.STATE
    }
    return [candidates[place] for place, slot in enumerate(slots) if place >= last_corrections.get(slot, 0)]


def _read_sentence(sentence: str, speech: _Speech) -> list[Candidate]:
    """Return the candidates of a sentence, or none if a clause is not understood that may change its meaning."""
    if len(sentence.split(maxsplit=1)) < 2:
        return []  # the grammar has no sentence of a single word
    lead = without_lead(sentence)
    asked = lead.predicate.rstrip("?!. ")
    if "?" in sentence and not ((wish := withdrawals.find_withdrawal(asked)) and wish.act is SpeechAct.ERASE):
        return []
    if withdrawals.POINTING_BACK.fullmatch(asked):
        return [_erasure("request", "that", "what was just said", lead, replace(speech, quote=sentence))]
    candidates: list[Candidate] = []
    subject, is_unread = None, False
    for place, quote in enumerate(() if _JOKING.search(sentence) else phrases.clauses(sentence.rstrip("? "))):
        clause = without_lead(quote, lead.cue, is_greeted=lead.is_greeted and not candidates)
        if subject and _CONTINUES.match(clause.predicate):
            clause = replace(clause, predicate=f"{subject} {clause.predicate}")
        read = _read_clause(clause, replace(speech, quote=quote)) if clause.predicate else []
        completes = not clause.predicate or (candidates and _ADDS_NOTHING.fullmatch(clause.predicate))
        is_needed = not read and not completes
        if is_needed and not phrases.is_negligible_clause(quote, is_first=not place):
            return []
        if is_unread and re.match(r"(?i)and (?:I|we)\b", quote):
            return []
        is_unread = is_needed
        subject = phrases.subject_of(clause.predicate) if read else None
        candidates += read
    return candidates


def _read_clause(clause: Clause, speech: _Speech) -> list[Candidate]:
    withdrawal = withdrawals.find_withdrawal(without_tails(clause.predicate))
    if withdrawal is None:
        return _read_statement(clause, speech)
    if withdrawal.takes_all:
        return [_erasure(EVERYTHING, withdrawal.topic or "", "everything", clause, speech)]
    stated = _read_statement(Clause(withdrawal.claim), speech)
    if not stated and withdrawal.topic and phrases.is_thing(withdrawal.topic.removeprefix("my ")):
        about = attribute_of_phrase(withdrawal.topic)
        return [_erasure(about, withdrawal.topic, f"what was said about {about}", clause, speech)]
    if not stated and withdrawal.words:
        # The rules make no fact of these words, but they were said and must not be shown any more.
        return [_erasure("request", withdrawal.words, "something", clause, speech)]
    return [_withdrawn(candidate, withdrawal, speech) for candidate in stated]


def _erasure(attribute: str, topic: str, what: str, clause: Clause, speech: _Speech) -> Candidate:
    """Return a candidate that asks to forget what was said about a topic. Its statement does not repeat the topic."""
    statement = f"{{who}} asked to forget {what}"
    return _candidate(ClauseClaim(Kind.ENTITY, attribute, topic, statement, SpeechAct.ERASE), clause, speech)


def _withdrawn(stated: Candidate, withdrawal: withdrawals.WithdrawnClaim, speech: _Speech) -> Candidate:
    """Return a candidate that withdraws the `stated` one. The statement of a request to erase has no value."""
    owner_name = speech.who if stated.subject in ("user", "team") else stated.subject
    claim = re.sub(r"^The (?=user|team)", "the ", stated.statement)
    statement = f"It is {'no longer' if withdrawal.cue is Cue.CHANGE else 'not'} true that {claim}"
    if withdrawal.act is SpeechAct.ERASE:
        statement = _sentence(f"{speech.who} asked to forget {owner_name}'s {stated.attribute.replace('_', ' ')}")
    marks = {"act": withdrawal.act, "cue": withdrawal.cue, "statement": statement}
    return stated.model_copy(update=marks | {"valid_from": None, "valid_to": None})


def _read_statement(clause: Clause, speech: _Speech) -> list[Candidate]:
    """Return the candidates of a clause that states, requests or plans something."""
    said, said_at, clause = clause.predicate, speech.turn.said_at, with_subject(clause)
    candidates = list(_relation_and_age(clause, clause.who, speech)) if clause.who else []
    predicate, claims = clause.predicate, read_clause(clause)
    is_past = _HAPPENED.match(predicate) is not None
    validity = Validity(past_day(said, said_at.date()) if said_at and is_past else None)
    if said_at and not claims:
        predicate, validity = split_days(_AT_AN_HOUR.sub("", predicate), said_at.date(), is_past=is_past)
        claims = [] if validity == ALWAYS else read_clause(replace(clause, predicate=predicate), is_dated=True)
    for claim in claims:
        dated = _with_days(claim, clause.predicate[len(predicate) :].strip(" ,"), validity)
        if claim.attribute.endswith("_date") and dated.statement == claim.statement:
            continue  # "the launch is next week" names no day
        candidates.append(_candidate(dated, clause, speech, ALWAYS if claim.attribute == "event" else validity))
    return candidates if claims or not clause.predicate else []


def _relation_and_age(clause: Clause, who: str, speech: _Speech) -> Iterator[Candidate]:
    """Yield what the subject of a clause says about a person: the relation to the speaker, and the age."""
    if clause.relation:
        statement = f"{who} is {{who}}'s {clause.relation}"
        claim = ClauseClaim(Kind.ENTITY, "relation", clause.relation, statement, about=who)
        yield _candidate(claim, replace(clause, who=None), speech)
    if clause.age:
        aged = ClauseClaim(Kind.ENTITY, "age", clause.age, f"{{who}} is {clause.age} years old")
        yield _candidate(aged, clause, speech)


def _with_days(claim: ClauseClaim, days: str, validity: Validity) -> ClauseClaim:
    """Return a plan or an event with its days in the statement.

    A plan without a known first day becomes a decision with its own words as the value, so that it replaces nothing.
    """
    if not claim.is_plan and claim.attribute != "event":
        return claim
    if not _MONTH_OR_NUMBER.search(days):
        day = validity.valid_from if claim.is_plan and not days.startswith("next ") else None
        days = f"on {day.day} {day:%B %Y}" if day else ""
    dated = claim._replace(statement=f"{claim.statement} {days}".strip())
    plan = re.sub(r"^\{who\} (?:will |is (?:going to )?|plans to )?", "", dated.statement)
    has_first_day = validity.valid_from or not claim.is_plan
    return dated if has_first_day else dated._replace(kind=Kind.DECISION, attribute="plan", value=plan)


def _candidate(claim: ClauseClaim, clause: Clause, speech: _Speech, validity: Validity = ALWAYS) -> Candidate:
    is_group = clause.is_joint and speech.group != speech.who
    speaker = speech.group if is_group else speech.who
    who = (clause.who or speaker).replace("{who}", speaker)
    return Candidate(
        kind=claim.kind,
        subject=claim.about or (who if clause.who else "team" if is_group else "user"),
        attribute=claim.attribute,
        value=claim.value,
        statement=_sentence(claim.statement.replace("{who}", who)),
        evidence=[Citation(turn=speech.turn.number, quote=speech.quote)],
        act=claim.act,
        cue=claim.cue,
        valid_from=validity.valid_from,
        valid_to=validity.valid_to,
        limited_to=claim.limited_to,
    )


def _sentence(text: str) -> str:
    """Return the text with a capital letter at its start and a full stop at its end."""
    return text[:1].upper() + text[1:].rstrip(" .") + "."
