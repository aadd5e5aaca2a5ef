"""Statements that an application or a person enters outside of a conversation, and how they are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

from afterword.errors import ArgumentInvalid
from afterword.facts.assertions import (
    OWNER,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Kind,
    SpeechAct,
    assertion_id,
)
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.words import date_words, folded
from afterword.normal_form import composed, composed_value
from afterword.privacy.blanking import mentions_phrase
from afterword.privacy.normalisation import undisguised_text
from afterword.privacy.policy import Privacy

JUDGE = "rules-1"
"""The judge that is recorded for verdicts on entered statements."""

_TICK = timedelta(microseconds=1)
_SAME_MOMENT = timedelta(seconds=1)
_NAMES_OTHER_TIME = re.compile(
    r"\b(?:today|tomorrow|tonight|(?:this|next) (?:week|month|year)|for (?:good|ever)|forever|the \d+(?:st|nd|rd|th)|"
    r"for \w+ (?:days?|weeks?|months?|years?)|heute|morgen|(?:diese|nächste)\w* (?:woche|monat|jahr)|für immer)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A statement to enter, with all texts in Unicode NFC.

    `valid_from` and `valid_to` (aware) say when it holds. `former_name` is what the subject was called before. Raises
    `ArgumentInvalid` if the statement is empty, or if `valid_to` lies before `valid_from`.
    """

    statement: str
    kind: Kind = Kind.ENTITY
    subject: str = OWNER
    attribute: str = "note"
    value: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    tags: tuple[str, ...] = ()
    former_name: str | None = None

    def __post_init__(self) -> None:
        for name in ("statement", "subject", "attribute", "value", "former_name"):
            object.__setattr__(self, name, composed_value(getattr(self, name)))
        object.__setattr__(self, "statement", single_line("statement", self.statement))
        object.__setattr__(self, "tags", tuple(map(composed, self.tags)))
        if self.valid_from and self.valid_to and self.valid_to < self.valid_from:
            raise ArgumentInvalid(f"valid_to={self.valid_to} lies before valid_from={self.valid_from}")


@dataclass(frozen=True, slots=True)
class FactEdit:
    """How a person edits a fact: the new sentence, value and subject. What is None does not change.

    Raises `ArgumentInvalid` if one of them is empty, or all of them are None.
    """

    statement: str | None = None
    value: str | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        given = {"statement": self.statement, "value": self.value, "subject": self.subject}
        if not any(text is not None for text in given.values()):
            raise ArgumentInvalid("give what is to be corrected: statement, value or about")
        for name, text in given.items():
            if text is not None:
                object.__setattr__(self, name, single_line("about" if name == "subject" else name, text))


def single_line(argument: str, text: object) -> str:
    """Return the text of an argument as one line. Raises `ArgumentInvalid` if it is empty or not a text."""
    line = " ".join(text.split()) if isinstance(text, str) else ""
    if not line:
        raise ArgumentInvalid(f"the {argument} is empty; write at least one word")
    return line


def check_may_be_kept(statement: str, value: str | None, privacy: Privacy) -> None:
    """Raise `ArgumentInvalid` if a statement asks to be off the record, or says nothing but a secret."""
    objection = privacy.objection(undisguised_text(statement), undisguised_text(value or ""))
    if objection is not None:
        raise ArgumentInvalid(f"the statement was not stored: {objection}, and such words are never kept")


def check_differs_from_fact(fact: Fact, edit: FactEdit) -> None:
    """Raise `ArgumentInvalid` if an edit says only what the fact says already.

    Such an edit would end the fact, and put the same words without a quote in its place.
    """
    words = ((edit.statement, fact.statement), (edit.value, fact.value), (edit.subject, fact.subject))
    if all(new is None or composed(new) == " ".join(old.split()) for new, old in words):
        raise ArgumentInvalid("the fact says this already; change the statement, the value, or whom it is about")


def masked_entry(entry: Entry, privacy: Privacy) -> Entry:
    """Return a copy of an entry in which secrets are masked."""
    texts = map(
        undisguised_text, (entry.value or "", entry.statement, entry.subject, entry.former_name or "", *entry.tags)
    )
    masked_texts = privacy.mask_value_and_others(entry.attribute, *texts, entry.attribute)
    value, statement, subject, former_name, *tags, attribute = masked_texts
    return replace(
        entry,
        statement=statement,
        subject=subject,
        attribute=attribute,
        value=entry.value and value,
        tags=tuple(tags),
        former_name=former_name or None,
    )


def entered_statement(
    scope: Scope,
    entry: Entry,
    evidence: Evidence,
    *,
    authority: Authority,
    said_at: datetime,
    act: SpeechAct = SpeechAct.STATE,
    limited_to: str | None = None,
) -> Assertion:
    """Return a new assertion that states an entry, or withdraws its value if `act` is a retraction.

    Each call gives it another id, so that two equal entries both count as support of their fact. `limited_to` names
    what or whom a withdrawal is limited to, if it does not withdraw the value altogether.
    """
    value = entry.value or (entry.statement if act is SpeechAct.STATE else "")
    content = (act, entry.kind, entry.subject, entry.attribute, value, entry.statement, limited_to, uuid4().hex)
    return Assertion(
        id=assertion_id(scope, None, content, (evidence,)),
        scope=scope,
        session_id=None,
        act=act,
        kind=entry.kind,
        subject=entry.subject,
        attribute=entry.attribute,
        value=value,
        statement=entry.statement,
        speaker=evidence.speaker,
        authority=authority,
        said_at=said_at,
        evidence=(evidence,),
        valid_from=entry.valid_from,
        valid_to=entry.valid_to,
        limited_to=limited_to,
        tags=entry.tags,
        former_name=entry.former_name,
    )


def edited_assertion(
    fact: Fact, edit: FactEdit, members: Sequence[Assertion], changed_at: datetime | None, privacy: Privacy
) -> Assertion:
    """Return the first of a fact's assertions (`members`) with the words and days that an edit gives the fact.

    The fact holds until `changed_at`; None if it was wrong from the start. Secrets in the words are masked. Raises
    `ArgumentInvalid` if the edit says only what the fact says already.
    """
    check_differs_from_fact(fact, edit)
    texts = map(composed, _edited_texts(fact, edit))
    value, statement, subject = privacy.mask_value_and_others(fact.attribute, *texts)
    valid_from, valid_to = validity_after_edit(fact, f"{statement} {value}", members, changed_at)
    return replace(
        members[0],
        statement=statement,
        value=value,
        subject=subject,
        attribute=attribute_after_edit(fact, value, statement),
        tags=fact.tags,
        valid_from=valid_from,
        valid_to=valid_to,
        cue=None,
        is_flagged=fact.is_flagged or None,
        former_name=members[0].former_name if edit.subject is None else None,
        authority=Authority.STATED,
    )


def _edited_texts(fact: Fact, edit: FactEdit) -> tuple[str, str, str]:
    """Return the value, the sentence and the subject that a fact has after an edit."""
    value = edit.value if edit.value is not None else edit.statement or fact.value
    statement = edit.statement or (fact.statement if edit.value is None else sentence_with_value(fact, value))
    if edit.subject is None:
        return value, statement, fact.subject
    if edit.statement is not None:
        return value, statement, edit.subject
    restated = sentence_with_subject(fact, statement, edit.subject)
    return restated if value == statement else value, restated, edit.subject


def restated_by_person(original: Assertion, earlier: Sequence[Assertion], at: datetime) -> Assertion:
    """Return a new assertion with the content of `original`, entered by a person after all of the `earlier` ones."""
    evidence = (Evidence(EvidenceKind.PERSON, original.statement),)
    content = (
        *(original.act, original.kind, original.subject, original.attribute, original.value, original.statement),
        uuid4().hex,
    )
    return replace(
        original,
        id=assertion_id(original.scope, None, content, evidence),
        session_id=None,
        speaker=None,
        said_at=moment_after_assertions(at, earlier),
        evidence=evidence,
        time_is_guess=False,
    )


def moment_after_assertions(at: datetime, assertions: Iterable[Assertion]) -> datetime:
    """Return `at`, or if it is not later than all of these assertions, the first microsecond that is.

    The clock may show the same time twice, but assertions are ordered by the time at which they were said.
    """
    return max([at, *(said.said_at + _TICK for said in assertions)]).astimezone(at.tzinfo)


def first_unused_moment(at: datetime, assertions: Iterable[Assertion]) -> datetime:
    """Return `at`, or a moment shortly after it if another statement was entered within a second from `at`."""
    return moment_after_assertions(
        at, [said for said in assertions if not said.session_id and at <= said.said_at < at + _SAME_MOMENT]
    )


def is_same_statement(earlier: Assertion, later: Assertion) -> bool:
    """Return whether two assertions have the same words and kind, and the earlier one has no `limited_to`."""
    is_comparable = earlier.act is SpeechAct.STATE and earlier.kind is later.kind and not earlier.limited_to
    return is_comparable and folded(earlier.statement) == folded(later.statement)


def validity_after_edit(
    fact: Fact, words: str, members: Sequence[Assertion], changed_at: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """Return when an edited fact begins and ends, as its statements (`members`) say it; None for what they do not say.

    If the fact changed at `changed_at`, only later times are kept. If the new `words` name other days than the fact, no
    times are kept. But a superseded fact that is corrected keeps its end in any case.
    """
    ended_at = fact.valid_to if changed_at is None and fact.status is Status.SUPERSEDED else None
    if _names_other_days(words, f"{fact.statement} {fact.value}"):
        return None, ended_at
    first, last = members[0].valid_from, next((said.valid_to for said in reversed(members) if said.valid_to), None)
    if fact.is_served and fact.valid_to is None:
        last = None  # it was said again since
    if changed_at is None:
        return first, ended_at or last
    return _if_after(first, changed_at), _if_after(last, changed_at)


def _names_other_days(words: str, before: str) -> bool:
    """Return whether new words name a day or a time that the words `before` do not name."""
    times = {match.group().casefold() for match in _NAMES_OTHER_TIME.finditer(words)}
    return bool(date_words(words) - date_words(before)) or any(time not in before.casefold() for time in times)


def _if_after(moment: datetime | None, earlier: datetime) -> datetime | None:
    return moment if moment and moment > earlier else None


def attribute_after_edit(fact: Fact, value: str, statement: str) -> str:
    """Return the attribute of an edited fact with this value and sentence.

    The attribute of a taste or a possession is often made of the value. It must not keep words that the person has
    replaced, as a forgotten session could be the only one that had them.
    """
    attribute = fact.attribute.replace("_", " ")
    if not _is_made_of_value(fact) or mentions_phrase(statement, attribute):
        return fact.attribute
    return value if value != statement else "note"


def _is_made_of_value(fact: Fact) -> bool:
    """Return whether the attribute of a fact names its value ("preferred_tea") or a part of it ("own a cat")."""
    attribute = fact.attribute.replace("_", " ")
    return mentions_phrase(fact.value, attribute) or mentions_phrase(attribute, fact.value)


def sentence_with_value(fact: Fact, value: str) -> str:
    """Return a fact's sentence with another value, or a new plain sentence if the value does not fit into the old one.

    A value that begins with a number does not fit in the place of one that begins with a word ("to Oslo on 12 March").
    """
    pattern = rf"(?<!\w){re.escape(fact.value)}(?!\w)"
    if fact.value[:1].isdigit() == value[:1].isdigit() and fact.value and re.search(pattern, fact.statement):
        return re.sub(pattern, lambda _: value, fact.statement)
    owner = "the user" if fact.subject == OWNER else fact.subject
    if _is_made_of_value(fact):
        return f"About {owner}: {value}"
    return f"The {fact.attribute.replace('_', ' ')} of {owner} is {value}."


def sentence_with_subject(fact: Fact, statement: str, subject: str) -> str:
    """Return a fact's sentence with another subject. Its name precedes a sentence that does not name the old one."""
    former_names, name = [_name_in_sentence(fact.subject)], _name_in_sentence(subject)
    if fact.subject == OWNER and fact.scope.kind is ScopeKind.USER:
        former_names.append(fact.scope.id)
    is_named = mentions_phrase(statement, name) and not mentions_phrase(former_names[0], name)
    if folded(subject) == folded(fact.subject) or is_named:
        return statement
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, former_names))})(?!\w)", re.IGNORECASE)
    first = pattern.search(statement)
    if first is None:
        return f"About {name}: {statement}"
    renamed = pattern.sub(lambda _: name, statement, count=0 if fact.subject == OWNER else 1)
    return renamed[0].upper() + renamed[1:] if first.start() == 0 and subject == OWNER else renamed


def _name_in_sentence(subject: str) -> str:
    return "the user" if subject == OWNER else subject.replace("_", " ")
