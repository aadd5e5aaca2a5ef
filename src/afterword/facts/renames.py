"""Subjects that were renamed: facts are told under the name that holds now, and both names find them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from afterword.facts.fact import Fact, Status
from afterword.facts.words import folded, plain_words

_FORMER_STATUSES = (Status.SUPERSEDED, Status.EXPIRED)


_QUALIFIERS = (
    "Old New Upper Lower Great Little North South East West Saint St San Santa Mount Alt Alte Neu Neue".split()
)
"""Words that make another name of the name after them."""
_NO_LONGER_BEFORE = r"(?<![\w-])" + "".join(rf"(?<!\b(?-i:{word}) )" for word in _QUALIFIERS)
_NO_LONGER_AFTER = r"(?!\w|-\w| & | (?-i:[A-ZÀ-ÖØ-Þ]))"
"""What may not follow a name. A name is not replaced in a longer one: "Max" is not "Max Weber"."""


@dataclass(frozen=True, slots=True)
class CurrentNames:
    """The name that holds now for each former name, which is folded, and how the former name was written."""

    by_former: Mapping[str, str]
    spellings: Mapping[str, str]

    def told(self, fact: Fact) -> Fact:
        """Return the fact under the names that hold now. The fact that tells of a renaming keeps the former name."""
        names = self.by_former
        own = folded(fact.former_name) if fact.former_name else None
        texts = [fact.statement, fact.value, fact.limited_to or "", fact.outcome or ""]
        for former in sorted(names, key=len, reverse=True):
            if former != own:
                # A text about the subject itself may write its name as it likes.
                spelling = former if folded(fact.subject) == former else self.spellings[former]
                texts = [_renamed(text, former, spelling, names[former]) for text in texts]
        statement, value, limited_to, outcome = texts
        if own and own in names and own not in folded(statement):
            statement = f"{statement.rstrip('.')} (formerly {fact.former_name})."
        subject = self.subject(fact.subject)
        exceptions = tuple(map(self.told, fact.exceptions))
        may_be = tuple(map(self.subject, fact.may_be))
        renamed = replace(fact, subject=subject, statement=statement, value=value, exceptions=exceptions, may_be=may_be)
        return replace(renamed, limited_to=limited_to or None, outcome=outcome or None)

    def subject(self, name: str) -> str:
        """Return the name that holds now for a subject."""
        return self.by_former.get(folded(name), name) if self.by_former else name

    def with_other_names(self, query: str) -> str:
        """Return the query with the other names of what it names."""
        words = _padded(query)
        named = {folded(name) for pair in self.by_former.items() for name in pair if _padded(name) in words}
        others = [
            other
            for former, current in self.by_former.items()
            for name, other in ((former, current), (folded(current), former))
            if name in named and folded(other) not in named
        ]
        return " ".join([query, *dict.fromkeys(others)])


def current_names(facts: Iterable[Fact]) -> CurrentNames:
    """Return the names that hold now, as the facts that tell of renamings say. Later ones win."""
    names: dict[str, str] = {}
    spellings: dict[str, str] = {}
    for fact in sorted(filter(_renames, facts), key=lambda fact: (fact.said_at, fact.id)):
        former = folded(fact.former_name or "")
        for earlier in [earlier for earlier, name in names.items() if folded(name) == former]:
            names[earlier] = fact.subject
        names[former], spellings[former] = fact.subject, fact.former_name or ""
        names.pop(folded(fact.subject), None)
    return CurrentNames(names, spellings)


def told_under_current_names(facts: Sequence[Fact]) -> list[Fact]:
    """Return all facts of a scope under the names that hold now."""
    names = current_names(facts)
    return list(map(names.told, facts)) if names.by_former else list(facts)


def _renames(fact: Fact) -> bool:
    has_held = fact.is_served or (fact.status in _FORMER_STATUSES and fact.valid_from is not None)
    return fact.former_name is not None and has_held


def _renamed(text: str, former: str, spelling: str, name: str) -> str:
    """Return a text with a name in place of the former one.

    A former name that was written with a capital letter is not looked for in small letters: "Mercury" is not "mercury".
    """
    spaced = r"\s+".join(map(re.escape, former.split()))

    def replacement(written: re.Match[str]) -> str:
        is_common_word = written[0].islower() and not spelling.islower()
        return written[0] if is_common_word else name

    return re.sub(rf"{_NO_LONGER_BEFORE}{spaced}{_NO_LONGER_AFTER}", replacement, text, flags=re.IGNORECASE)


def _padded(text: str) -> str:
    """Return the words of a text between single spaces, so that whole words are found in it."""
    return f" {' '.join(plain_words(folded(text)))} "
