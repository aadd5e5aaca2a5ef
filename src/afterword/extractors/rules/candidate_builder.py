"""Build a candidate from a rule's match: its statement, slot, dates and evidence. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.rules import dates, withdrawals
from afterword.extractors.rules.rule import WEEKDAY, Match, Rule
from afterword.extractors.rules.sentences import Passage
from afterword.extractors.rules.third_person import sentence, third_person, trimmed
from afterword.extractors.rules.vocabulary import LANGUAGES, PERSONAL, label_slug, slot, slug
from afterword.extractors.rules.withdrawals import WithdrawnClaim
from afterword.facts.assertions import Kind, SpeechAct
from afterword.facts.transcripts import Turn

_LONGEST_VALUE, _LONGEST_STATEMENT = 200, 400
_SUBSTANCE = re.compile(r"\w\w|\d")
_SPOKEN = re.compile(r"\b(?:I|we|let's)\b|\b(?:I|we)'", re.IGNORECASE)
_SPEAKER = re.compile(r"^(?:I|we)(?:'\w+)?\s(?:want (?:you to )?)?", re.IGNORECASE)
_JOINT = re.compile(r"\b(?:we|our|let's|us)\b", re.IGNORECASE)
_KEEPS_CAPITAL = re.compile(rf"(?:{LANGUAGES}|{WEEKDAY}s?)$", re.IGNORECASE)
_FRAMES_A_WISH = re.compile(r"\{I\}(?:'s (?:rule|limit|schedule|figure)| wants| asks| decided| agreed| no longer)")
_FEWEST_WORDS_ERASED = 2
_PREDICATE = re.compile(
    r"^(?:I|we)(?:'m|'re|'ve| am| are| have)?\s(?!(?:'|said|told|asked|mentioned|wrote|ever|have|am|are)\b)",
    re.IGNORECASE,
)
_ASKED = "{I} wants the assistant to {v}"
_PLEASE = re.compile(r",?\s(?:please|pls)\b(?=[,.;]|$)|\b(?:please|pls)\s", re.IGNORECASE)
_BUDGET = re.compile(r"^(?:my|our|the) budget\b", re.IGNORECASE)
_MONTH = "(?:" + "|".join(dates.MONTHS) + ")"
_DAY_OF_MONTH = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?)\b(?!,?\s\d{{4}})",
    re.IGNORECASE,
)
_FRAMED = re.compile(r"^\{I\}(?: wants|'s \w+): \{c\}$")


@dataclass(frozen=True, slots=True)
class Speech:
    """One turn and its speaker.

    Statements call the speaker `who`, and the speaker's people `group`. `is_correcting` is true after words that
    correct something said before.
    """

    turn: Turn
    who: str
    group: str
    is_owner: bool
    is_correcting: bool = False

    @property
    def said_on(self) -> date | None:
        """The day on which the turn was said."""
        return self.turn.said_at.date() if self.turn.said_at else None

    def quote(self, passage: Passage) -> str:
        """Return the words of a passage exactly as the turn has them."""
        return self.turn.text[passage.start : passage.end]


def apply_rule(rule: Rule, passage: Passage, speech: Speech) -> Candidate | None:
    """Return the candidate that a rule finds in a passage, or None if the rule does not match."""
    text = trimmed(passage.text)
    match = rule.pattern.search(text)
    if not match or (rule.check and not rule.check(match, text)):
        return None
    return build_candidate(rule, match, passage, speech)


def build_candidate(
    rule: Rule, match: Match, quoted: Passage, speech: Speech, *, is_dated: bool = True
) -> Candidate | None:
    """Return the candidate of a match, or None if its value says nothing or its statement is too long."""
    groups = {name: words for name, words in match.groupdict().items() if words}
    value = _find_value(groups, match.string)
    if rule.frame == _ASKED:
        value = _PLEASE.sub("", value)
    if not _has_value(value, speech):
        return None
    validity = _validity(rule, match.string, speech) if is_dated else dates.Validity()
    statement = _with_dates(_statement(rule, groups, match.string, speech), validity, is_event=rule.event)
    if len(statement) > _LONGEST_STATEMENT:
        return None
    return Candidate(
        kind=rule.kind,
        subject=_find_subject(groups, match.string, speech),
        attribute=_find_attribute(rule, groups, value),
        value=value,
        statement=statement,
        evidence=[Citation(turn=speech.turn.number, quote=speech.quote(quoted))],
        act=rule.act,
        cue=rule.cue or (withdrawals.cue(match.string, is_correcting=speech.is_correcting) if is_dated else None),
        valid_from=validity.valid_from,
        valid_to=validity.valid_to,
        limited_to=groups.get("case"),
    )


def build_erasure(topic: str, passage: Passage, speech: Speech) -> Candidate:
    """Return the candidate that asks to erase what was said about a topic."""
    about = third_person(topic, speech.who, speech.group)
    return Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute=slug(topic, "said"),
        value=topic,
        statement=sentence(f"{speech.who} asks to forget what was said about {about}"),
        evidence=[Citation(turn=speech.turn.number, quote=speech.quote(passage))],
        act=SpeechAct.ERASE,
    )


def build_withdrawal(stated: Candidate, withdrawal: WithdrawnClaim, text: str, speech: Speech) -> Candidate:
    """Return the candidate that withdraws `stated`: the same slot, with a statement that takes it back.

    A request to erase names the attribute only, so that the erased words are not stored once more.
    """
    who = speech.who if stated.subject in ("user", "team") else stated.subject
    if withdrawal.act is SpeechAct.ERASE:
        statement = f"{speech.who} asked to forget {who}'s {stated.attribute.replace('_', ' ')}"
    elif withdrawal.is_denied:
        claim = stated.statement
        claim = claim[:1].lower() + claim[1:] if claim.startswith("The ") else claim
        statement = f"it is not true that {claim}"
    else:
        statement = third_person(text, speech.who, speech.group)
    changed = {"act": withdrawal.act, "cue": withdrawal.cue, "statement": sentence(statement)[:_LONGEST_STATEMENT]}
    return stated.model_copy(update=changed | {"valid_from": None, "valid_to": None, "limited_to": None})


def build_unread_erasure(claim: str, passage: Passage, speech: Speech) -> Candidate | None:
    """Return the request to erase a claim that no rule understands, named by the words after its subject.

    Returns None if those words name nothing.
    """
    value = _PREDICATE.sub("", claim, count=1)
    if value == claim or len(value.split()) < _FEWEST_WORDS_ERASED or len(value) > _LONGEST_VALUE:
        return None
    about = slot(value, "said")
    return Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute=about,
        value=value,
        statement=sentence(f"{speech.who} asked to forget what was said about {about.replace('_', ' ')}"),
        evidence=[Citation(turn=speech.turn.number, quote=speech.quote(passage))],
        act=SpeechAct.ERASE,
    )


def without_article(name: str) -> str:
    """Return a name without its article or possessive ending."""
    return re.sub(r"^(?:the|our|my)\s|'s?$", "", name.strip(), flags=re.IGNORECASE)


def _has_value(value: str, speech: Speech) -> bool:
    """Whether the value says something: not too long, and more than a guest's own name."""
    is_own_name = not speech.is_owner and value.casefold() == speech.turn.speaker.casefold()
    return not is_own_name and bool(_SUBSTANCE.search(value)) and len(value) <= _LONGEST_VALUE


def _validity(rule: Rule, text: str, speech: Speech) -> dates.Validity:
    if speech.said_on is None or rule.act is not SpeechAct.STATE:
        return dates.Validity()
    return dates.validity(text, speech.said_on, is_event=rule.event)


def _with_dates(statement: str, validity: dates.Validity, *, is_event: bool) -> str:
    """Return the statement with the dates that only the day of saying tells: a missing year, "next Monday"."""
    if is_event and validity.valid_from and validity.valid_from == validity.valid_to:
        year = validity.valid_from.year
        statement = _DAY_OF_MONTH.sub(lambda day: f"{day.group()} {year}", statement, count=1)
    days = [f"{day.first}" if day.first == day.last else f"{day.first} to {day.last}" for day in validity.relative]
    return sentence(statement + (f" ({', '.join(days)})" if days else ""))


def _find_value(groups: dict[str, str], text: str) -> str:
    """Return the words of the value; for a clause with a cue like "from now on", the clause without the cue."""
    if groups.get("cue", "").lower().startswith("from"):
        return _SPEAKER.sub("", trimmed(" ".join(text.replace(groups["cue"], " ").split())))
    return trimmed(groups.get("v") or groups.get("w") or groups.get("a") or text)


def _statement(rule: Rule, groups: dict[str, str], text: str, speech: Speech) -> str:
    in_third_person = {name: third_person(trimmed(words), speech.who, speech.group) for name, words in groups.items()}
    frame = "{c}" if _FRAMED.match(rule.frame) and _SPOKEN.search(text) else rule.frame
    if frame == "{I}'s limit: {c}" and _BUDGET.match(trimmed(text)):
        return third_person(_BUDGET.sub("my budget", trimmed(text)), speech.who, speech.group)
    us = speech.group if _JOINT.search(text) else speech.who
    words = {
        "v": "",
        "when": "",
        **in_third_person,
        "us": us,
        "s": without_article(in_third_person.get("s", "")),
        "a": _in_lower_case(in_third_person.get("a", "")),
    }
    clause = third_person(trimmed(text), speech.who, speech.group)
    if _FRAMES_A_WISH.match(frame):
        clause = _in_lower_case(clause)
        words["v"] = _in_lower_case(words["v"]) if text.startswith(groups.get("v", "\n")) else words["v"]
    if frame == _ASKED:
        asked = _PLEASE.sub("", words["v"]).replace("the assistant's", "its")
        words["v"] = asked if asked[1:2].isupper() else asked[:1].lower() + asked[1:]
    return frame.format(c=clause, I=speech.who, **words)


def _in_lower_case(label: str) -> str:
    """Return a label as it is written inside a sentence: "Payment" becomes `payment`; "TK" and "Studio B" stay."""
    first, _, others = label.partition(" ")
    is_plain = first[1:].islower() and not others[:1].isupper() and not _KEEPS_CAPITAL.match(first)
    return label[:1].lower() + label[1:] if is_plain else label


def _find_subject(groups: dict[str, str], text: str, speech: Speech) -> str:
    if "s" in groups:
        return without_article(groups["s"])
    return "team" if _JOINT.search(text) and not speech.is_owner else "user"


def _find_attribute(rule: Rule, groups: dict[str, str], value: str) -> str:
    """Return the attribute: the rule's own, or one made of the head noun, a limit and a period."""
    period = f"_per_{groups['period'].lower()}" if "period" in groups else ""
    if rule.attribute:
        return rule.attribute + period
    name = label_slug(groups["a"]) if "a" in groups and not rule.by_value else slot(value)
    if name in PERSONAL and "a" not in groups:
        name += "_wish"  # how someone wants names written is not what they are called
    return f"max_{name}" if "limit" in rule.frame else name + period
