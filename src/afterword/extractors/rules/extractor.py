"""The offline extractor and judge. The extractor applies a small English grammar to plain clauses of people.

It uses no model, no network and no clock. A clause that the grammar does not fully understand gives no candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Extraction, Rejection, Usage, Window
from afterword.extractors.judge import Pair
from afterword.extractors.rules import phrases, withdrawals
from afterword.extractors.rules.dates import ALWAYS, Validity, past_day, split_days
from afterword.extractors.rules.grammar import ClauseClaim, read_clause, relation_claim
from afterword.extractors.rules.vocabulary import MONTHS, SHARED_VERB, attribute_of_phrase
from afterword.extractors.slot_relation import RELATION_VERSION, relation_by_slot
from afterword.facts.assertions import EVERYTHING, Cue, Kind, SpeechAct, Verdict
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.foreign.stretches import foreign_stretches_by_turn

_JOKING = re.compile(
    r"[;:]-?[)DP](?!\w)|[\U0001F300-\U0001FAFF]|(?i:\b(?:haha\w*|lol|xd|just kidding|jk)\b)|/s$|"
    r"^(?i:(?:oh|yeah|yes|sure|right|wow)\b[\w ,]{0,8}\bI (?:just|so|simply|totally|absolutely) (?:love|adore|enjoy)\b)"
)
_CALLED_JOKE = re.compile(
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
        related = ((pair, relation_by_slot(*pair)) for pair in pairs)
        return [Verdict(pair[0].id, pair[1].id, *why, self.version) for pair, why in related if why], Usage()


class _Quote(NamedTuple):
    """Words of a turn that are read, and the names of the speaker and of the speaker's group in statements."""

    turn: Turn
    text: str
    speaker: str
    speaker_group: str


def find_candidates(window: Window) -> list[Candidate]:
    """Return the candidates of a window in the order of saying. Those that a later sentence corrects are left out."""
    candidates: list[Candidate] = []
    turns = (*window.context, *window.turns)
    for turn, stretches in list(zip(turns, foreign_stretches_by_turn(turns), strict=True))[len(window.context) :]:
        if turn.role is not Role.HUMAN:
            continue
        name = turn.speaker[:1].upper() + turn.speaker[1:]
        quote = _Quote(turn, "", *(("the user", "the user") if turn.speaker in window.owners else (name, "the team")))
        words = phrases.own_words(turn.text, stretches)
        for sentence in () if _CALLED_JOKE.search(words) else phrases.sentences(words):
            candidates += _read_sentence(sentence.removeprefix(f"{name}: "), quote)
    corrected = {  # the place of the last correction of each slot
        (each.subject, each.attribute): place
        for place, each in enumerate(candidates)
        if each.cue is Cue.CORRECTION and each.act is SpeechAct.STATE
    }
    return [each for place, each in enumerate(candidates) if place >= corrected.get((each.subject, each.attribute), 0)]


def _read_sentence(sentence: str, quote: _Quote) -> list[Candidate]:
    """Return the candidates of a sentence, or none if it is a question, a joke or not understood."""
    if len(sentence.split(maxsplit=1)) < 2:
        return []  # the grammar has no sentence of a single word
    lead = phrases.clause_without_lead(sentence)
    asked = lead.predicate.rstrip("?!. ")
    if "?" in sentence and not ((wish := withdrawals.find_withdrawal(asked)) and wish.act is SpeechAct.ERASE):
        return []
    if withdrawals.POINTING_BACK.fullmatch(asked):
        return [_erasure_candidate("request", "that", "what was just said", lead, quote._replace(text=sentence))]
    return [] if _JOKING.search(sentence) else _read_clauses(sentence, lead, quote)


def _read_clauses(sentence: str, lead: phrases.Clause, quote: _Quote) -> list[Candidate]:
    """Return the candidates of all clauses, or none if a clause is not understood that may change their meaning."""
    candidates: list[Candidate] = []
    subject, is_unread = "", False
    for place, words in enumerate(phrases.clauses(sentence.rstrip("? "))):
        clause = phrases.clause_without_lead(words, lead.cue, is_greeted=lead.is_greeted and not candidates)
        if subject and _CONTINUES.match(clause.predicate):
            clause = clause._replace(predicate=f"{subject} {clause.predicate}")
        found = _read_clause(clause, quote._replace(text=words))
        follows_unread, is_unread = is_unread, not (found or _adds_nothing(clause, candidates))
        if is_unread and not phrases.is_negligible_clause(words, is_first=not place):
            return []
        if follows_unread and re.match(r"(?i)and (?:I|we)\b", words):
            return []
        subject = phrases.subject_of(clause.predicate) if found else ""
        candidates += found
    return candidates


def _adds_nothing(clause: phrases.Clause, said_before: Sequence[Candidate]) -> bool:
    """Return whether a clause is empty, or only completes the statements before it ("thanks")."""
    return not clause.predicate or (bool(said_before) and _ADDS_NOTHING.fullmatch(clause.predicate) is not None)


def _read_clause(clause: phrases.Clause, quote: _Quote) -> list[Candidate]:
    withdrawal = withdrawals.find_withdrawal(phrases.without_tails(clause.predicate))
    if withdrawal is None:
        return _read_statement(clause, quote)
    if withdrawal.takes_all:
        return [_erasure_candidate(EVERYTHING, withdrawal.topic or "", "everything", clause, quote)]
    stated = _read_statement(phrases.Clause(withdrawal.claim), quote)
    if not stated and withdrawal.topic and phrases.is_thing(withdrawal.topic.removeprefix("my ")):
        about = attribute_of_phrase(withdrawal.topic)
        return [_erasure_candidate(about, withdrawal.topic, f"what was said about {about}", clause, quote)]
    if not stated and withdrawal.words:
        # The rules make no fact of these words, but they were said and must not be shown any more.
        return [_erasure_candidate("request", withdrawal.words, "something", clause, quote)]
    return [_withdrawal_candidate(candidate, withdrawal, quote) for candidate in stated]


def _erasure_candidate(attribute: str, topic: str, what: str, clause: phrases.Clause, quote: _Quote) -> Candidate:
    """Return a candidate that asks to forget what was said about a topic. Its statement does not repeat the topic."""
    statement = f"{{who}} asked to forget {what}"
    return _candidate(ClauseClaim(Kind.ENTITY, attribute, topic, statement, SpeechAct.ERASE), clause, quote)


def _withdrawal_candidate(stated: Candidate, withdrawal: withdrawals.WithdrawnClaim, quote: _Quote) -> Candidate:
    """Return a candidate that withdraws the `stated` one. The statement of a request to erase has no value."""
    owner_name = quote.speaker if stated.subject in ("user", "team") else stated.subject
    claim = re.sub(r"^The (?=user|team)", "the ", stated.statement)
    statement = f"It is {'no longer' if withdrawal.cue is Cue.CHANGE else 'not'} true that {claim}"
    if withdrawal.act is SpeechAct.ERASE:
        statement = _as_sentence(f"{quote.speaker} asked to forget {owner_name}'s {stated.attribute.replace('_', ' ')}")
    marks = {"act": withdrawal.act, "cue": withdrawal.cue, "statement": statement}
    return stated.model_copy(update=marks | {"valid_from": None, "valid_to": None})


def _read_statement(clause: phrases.Clause, quote: _Quote) -> list[Candidate]:
    """Return the candidates of a clause that states, requests or plans something."""
    said, said_at, clause = clause.predicate, quote.turn.said_at, phrases.separate_subject(clause)
    predicate, claims = clause.predicate, read_clause(clause)
    is_past = _HAPPENED.match(predicate) is not None
    validity = Validity(past_day(said, said_at.date()) if said_at and is_past else None)
    if said_at and not claims:
        predicate, validity = split_days(_AT_AN_HOUR.sub("", predicate), said_at.date(), is_past=is_past)
        claims = [] if validity == ALWAYS else read_clause(clause._replace(predicate=predicate), is_dated=True)
    if clause.predicate and not claims:
        return []
    candidates = list(_relation_and_age_candidates(clause, quote))
    for claim in claims:
        dated = _with_days_in_statement(claim, clause.predicate[len(predicate) :].strip(" ,"), validity)
        if not claim.attribute.endswith("_date") or dated.statement != claim.statement:
            candidates.append(_candidate(dated, clause, quote, validity))  # "the launch is next week" names no day
    return candidates


def _relation_and_age_candidates(clause: phrases.Clause, quote: _Quote) -> Iterator[Candidate]:
    """Yield what the subject of a clause says about a person: the relation to the speaker, and the age."""
    if clause.who and clause.relation:
        yield _candidate(relation_claim(clause.who, clause.relation), clause._replace(who=None), quote)
    if clause.age:
        aged = ClauseClaim(Kind.ENTITY, "age", clause.age, f"{{who}} is {clause.age} years old")
        yield _candidate(aged, clause, quote)


def _with_days_in_statement(claim: ClauseClaim, days: str, validity: Validity) -> ClauseClaim:
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


def _candidate(claim: ClauseClaim, clause: phrases.Clause, quote: _Quote, validity: Validity = ALWAYS) -> Candidate:
    validity = ALWAYS if claim.attribute == "event" else validity
    is_group = clause.is_joint and quote.speaker_group != quote.speaker
    speaker = quote.speaker_group if is_group else quote.speaker
    who = (clause.who or speaker).replace("{who}", speaker)
    return Candidate(
        kind=claim.kind,
        subject=claim.subject or (who if clause.who else "team" if is_group else "user"),
        attribute=claim.attribute,
        value=claim.value,
        statement=_as_sentence(claim.statement.replace("{who}", who)),
        evidence=[Citation(turn=quote.turn.number, quote=quote.text)],
        act=claim.act,
        cue=claim.cue,
        limited_to=claim.limited_to,
        **validity._asdict(),
    )


def _as_sentence(text: str) -> str:
    """Return the text with a capital letter at its start and a full stop at its end."""
    return text[:1].upper() + text[1:].rstrip(" .") + "."
