"""Make a candidate of what a rule has found: statement, slot, dates and the words that say it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.rules import dates, takebacks
from afterword.extractors.rules.persons import sentence, third_person, trimmed
from afterword.extractors.rules.rule import WEEKDAY, Match, Rule
from afterword.extractors.rules.sentences import Span
from afterword.extractors.rules.takebacks import TakeBack
from afterword.extractors.rules.vocabulary import LANGUAGES, PERSONAL, label_slug, slot, slug
from afterword.facts.assertions import Kind, SpeechAct
from afterword.facts.transcripts import Turn

_LONGEST_VALUE, _LONGEST_STATEMENT = 200, 400
_SUBSTANCE = re.compile(r"\w\w|\d")
_SPOKEN = re.compile(r"\b(?:I|we|let's)\b|\b(?:I|we)'", re.IGNORECASE)
_SPEAKER = re.compile(r"^(?:I|we)(?:'\w+)?\s(?:want (?:you to )?)?", re.IGNORECASE)
_JOINT = re.compile(r"\b(?:we|our|let's|us)\b", re.IGNORECASE)
_KEEPS_CAPITAL = re.compile(rf"(?:{LANGUAGES}|{WEEKDAY}s?)$", re.IGNORECASE)
_FRAMES_A_WISH = re.compile(r"\{I\}(?:'s (?:rule|limit|schedule|figure)| wants| asks| decided| agreed| no longer)")
_FEWEST_WORDS_FORGOTTEN = 2
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
    """Who speaks in which turn, what statements call them alone and together, and whether they put something right."""

    turn: Turn
    who: str
    group: str
    is_owner: bool
    is_correcting: bool = False

    @property
    def said_on(self) -> date | None:
        """The day on which it was said."""
        return self.turn.said_at.date() if self.turn.said_at else None

    def quote(self, span: Span) -> str:
        """Return the words of a passage as they stand in the turn."""
        return self.turn.text[span.start : span.end]


def applied(rule: Rule, span: Span, speech: Speech) -> Candidate | None:
    """Return what a rule makes of a passage, or None where it does not fit."""
    text = trimmed(span.text)
    match = rule.pattern.search(text)
    if not match or (rule.check and not rule.check(match, text)):
        return None
    return made(rule, match, span, speech)


def made(rule: Rule, match: Match, quoted: Span, speech: Speech, *, is_dated: bool = True) -> Candidate | None:
    """Return the candidate of a match, or None where there is no value to speak of or no room for it."""
    groups = {name: words for name, words in match.groupdict().items() if words}
    value = _value(groups, match.string)
    if rule.frame == _ASKED:
        value = _PLEASE.sub("", value)
    if not _is_telling(value, speech):
        return None
    times = _times(rule, match.string, speech) if is_dated else dates.Validity()
    statement = _dated(_statement(rule, groups, match.string, speech), times, is_event=rule.event)
    if len(statement) > _LONGEST_STATEMENT:
        return None
    return Candidate(
        kind=rule.kind,
        subject=_subject(groups, match.string, speech),
        attribute=_attribute(rule, groups, value),
        value=value,
        statement=statement,
        evidence=[Citation(turn=speech.turn.number, quote=speech.quote(quoted))],
        act=rule.act,
        cue=rule.cue or (takebacks.cue(match.string, is_correcting=speech.is_correcting) if is_dated else None),
        valid_from=times.valid_from,
        valid_to=times.valid_to,
        limited_to=groups.get("case"),
    )


def erasure(topic: str, span: Span, speech: Speech) -> Candidate:
    """Return the candidate that asks for a topic to be forgotten."""
    about = third_person(topic, speech.who, speech.group)
    return Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute=slug(topic, "said"),
        value=topic,
        statement=sentence(f"{speech.who} asks to forget what was said about {about}"),
        evidence=[Citation(turn=speech.turn.number, quote=speech.quote(span))],
        act=SpeechAct.ERASE,
    )


def reversed_of(fact: Candidate, back: TakeBack, text: str, speech: Speech) -> Candidate:
    """Return the take-back of what a rule has read in the embedded clause: the same slot, its statement turned round.

    A request to forget names the side only, so that what is forgotten is not written down once more.
    """
    who = speech.who if fact.subject in ("user", "team") else fact.subject
    if back.act is SpeechAct.ERASE:
        statement = f"{speech.who} asked to forget {who}'s {fact.attribute.replace('_', ' ')}"
    elif back.is_denied:
        kept = fact.statement[:1].lower() + fact.statement[1:] if fact.statement.startswith("The ") else fact.statement
        statement = f"it is not true that {kept}"
    else:
        statement = third_person(text, speech.who, speech.group)
    changed = {"act": back.act, "cue": back.cue, "statement": sentence(statement)[:_LONGEST_STATEMENT]}
    return fact.model_copy(update=changed | {"valid_from": None, "valid_to": None, "limited_to": None})


def forgotten(said: str, span: Span, speech: Speech) -> Candidate | None:
    """Return the request to forget what no rule reads, by the words after its subject; None where they name nothing."""
    value = _PREDICATE.sub("", said, count=1)
    if value == said or len(value.split()) < _FEWEST_WORDS_FORGOTTEN or len(value) > _LONGEST_VALUE:
        return None
    about = slot(value, "said")
    return Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute=about,
        value=value,
        statement=sentence(f"{speech.who} asked to forget what was said about {about.replace('_', ' ')}"),
        evidence=[Citation(turn=speech.turn.number, quote=speech.quote(span))],
        act=SpeechAct.ERASE,
    )


def bare(name: str) -> str:
    """Return a name without its article or possessive ending."""
    return re.sub(r"^(?:the|our|my)\s|'s?$", "", name.strip(), flags=re.IGNORECASE)


def _is_telling(value: str, speech: Speech) -> bool:
    """Whether there is a value to speak of: one of a bearable length, and of a guest more than the own name."""
    is_own_name = not speech.is_owner and value.casefold() == speech.turn.speaker.casefold()
    return not is_own_name and bool(_SUBSTANCE.search(value)) and len(value) <= _LONGEST_VALUE


def _times(rule: Rule, text: str, speech: Speech) -> dates.Validity:
    if speech.said_on is None or rule.act is not SpeechAct.STATE:
        return dates.Validity()
    return dates.validity(text, speech.said_on, is_event=rule.event)


def _dated(said: str, times: dates.Validity, *, is_event: bool) -> str:
    """Return the sentence with the dates that it leaves to the day on which it was said."""
    is_of_one_day = is_event and times.valid_from == times.valid_to
    told = _with_year(said, times.valid_from) if is_of_one_day else said
    return sentence(told + _resolved(times))


def _value(groups: dict[str, str], text: str) -> str:
    """Return the value's words; of a clause with a cue like "from now on", the rest of it."""
    if groups.get("cue", "").lower().startswith("from"):
        return _SPEAKER.sub("", trimmed(" ".join(text.replace(groups["cue"], " ").split())))
    return trimmed(groups.get("v") or groups.get("w") or groups.get("a") or text)


def _statement(rule: Rule, groups: dict[str, str], text: str, speech: Speech) -> str:
    said = {name: third_person(trimmed(words), speech.who, speech.group) for name, words in groups.items()}
    frame = "{c}" if _FRAMED.match(rule.frame) and _SPOKEN.search(text) else rule.frame
    if frame == "{I}'s limit: {c}" and _BUDGET.match(trimmed(text)):
        return third_person(_BUDGET.sub("my budget", trimmed(text)), speech.who, speech.group)
    us = speech.group if _JOINT.search(text) else speech.who
    words = {"v": "", "when": "", **said, "us": us, "s": bare(said.get("s", "")), "a": _lowered(said.get("a", ""))}
    clause = third_person(trimmed(text), speech.who, speech.group)
    if _FRAMES_A_WISH.match(frame):
        clause = _lowered(clause)
        words["v"] = _lowered(words["v"]) if text.startswith(groups.get("v", "\n")) else words["v"]
    if frame == _ASKED:
        asked = _PLEASE.sub("", words["v"]).replace("the assistant's", "its")
        words["v"] = asked if asked[1:2].isupper() else asked[:1].lower() + asked[1:]
    return frame.format(c=clause, I=speech.who, **words)


def _lowered(label: str) -> str:
    """Return words as they stand inside a sentence: "Payment" is `payment`; "TK" and "Studio B" stay."""
    first, _, rest = label.partition(" ")
    is_plain = first[1:].islower() and not rest[:1].isupper() and not _KEEPS_CAPITAL.match(first)
    return label[:1].lower() + label[1:] if is_plain else label


def _resolved(times: dates.Validity) -> str:
    """Return the days that words like "next Monday" meant, so that the sentence can be read later."""
    spans = [f"{day.first}" if day.first == day.last else f"{day.first} to {day.last}" for day in times.relative]
    return f" ({', '.join(spans)})" if spans else ""


def _with_year(words: str, day: date | None) -> str:
    """Return the words with the year after a day of a month that has none: "3 July" is `3 July 2026`."""
    return _DAY_OF_MONTH.sub(lambda found: f"{found.group()} {day.year}", words, count=1) if day else words


def _subject(groups: dict[str, str], text: str, speech: Speech) -> str:
    if "s" in groups:
        return bare(groups["s"])
    return "team" if _JOINT.search(text) and not speech.is_owner else "user"


def _attribute(rule: Rule, groups: dict[str, str], value: str) -> str:
    """Return the slot's name: fixed, counted by a period, a limit, or the head noun of the words it is about."""
    period = f"_per_{groups['period'].lower()}" if "period" in groups else ""
    if rule.attribute:
        return rule.attribute + period
    name = label_slug(groups["a"]) if "a" in groups and not rule.by_value else slot(value)
    if name in PERSONAL and "a" not in groups:
        name += "_wish"  # how someone wants names written is not what they are called
    return f"max_{name}" if "limit" in rule.frame else name + period
