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
from afterword.extractors.rules.vocabulary import LANGUAGES, PERSONAL, label_slug, slot, slug
from afterword.store.assertions import Act, Kind
from afterword.store.transcripts import Turn

_LONGEST_VALUE, _LONGEST_STATEMENT = 200, 400
_SPOKEN = re.compile(r"\b(?:I|we|let's)\b|\b(?:I|we)'", re.IGNORECASE)
_SPEAKER = re.compile(r"^(?:I|we)(?:'\w+)?\s(?:want (?:you to )?)?", re.IGNORECASE)
_JOINT = re.compile(r"\b(?:we|our|let's|us)\b", re.IGNORECASE)
_KEEPS_CAPITAL = re.compile(rf"(?:{LANGUAGES}|{WEEKDAY}s?)$", re.IGNORECASE)
_FRAMES_A_WISH = re.compile(r"\{I\}(?:'s (?:rule|limit|schedule|figure)| wants| asks| decided| agreed| no longer)")
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
    if not speech.is_owner and value.casefold() == speech.turn.speaker.casefold():
        return None
    if not re.search(r"\w\w|\d", value) or len(value) > _LONGEST_VALUE:
        return None
    times = dates.Validity()
    if speech.said_on and is_dated and rule.act is Act.STATE:
        times = dates.validity(match.string, speech.said_on, is_event=rule.event)
    statement = sentence(_statement(rule, groups, match.string, speech) + _resolved(times))
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
        act=Act.ERASE,
    )


def bare(name: str) -> str:
    """Return a name without its article or possessive ending."""
    return re.sub(r"^(?:the|our|my)\s|'s?$", "", name.strip(), flags=re.IGNORECASE)


def _value(groups: dict[str, str], text: str) -> str:
    """Return the value's words; of a clause with a cue like "from now on", the rest of it."""
    if groups.get("cue", "").lower().startswith("from"):
        return _SPEAKER.sub("", trimmed(" ".join(text.replace(groups["cue"], " ").split())))
    return trimmed(groups.get("v") or groups.get("w") or groups.get("a") or text)


def _statement(rule: Rule, groups: dict[str, str], text: str, speech: Speech) -> str:
    said = {name: third_person(trimmed(words), speech.who, speech.group) for name, words in groups.items()}
    frame = "{c}" if _FRAMED.match(rule.frame) and _SPOKEN.search(text) else rule.frame
    words = {"v": "", **said, "s": bare(said.get("s", "")), "a": _lowered(said.get("a", ""))}
    clause = third_person(trimmed(text), speech.who, speech.group)
    if _FRAMES_A_WISH.match(frame):
        clause = _lowered(clause)
        words["v"] = _lowered(words["v"]) if text.startswith(groups.get("v", "\n")) else words["v"]
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
