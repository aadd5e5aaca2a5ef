"""Values that agents must no longer be told, found in texts; and those that facts replaced, as far as they are told.

Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Set

from afterword.facts.fact import Fact, Status
from afterword.privacy.prompt_injection import is_instruction

FEW_WORDS = 4
"""A value of more words counts as named where most of them are."""
MOST_OF = 0.7

Words = frozenset[str]

# A few plain words. Nothing that closes a note, opens another, quotes somebody, looks like a secret or gives an order.
_SHORT_VALUE = re.compile(r"[^\W_][\w .,'’&+/%°€$£-]{0,39}")


class NamedValues:
    """Values, by their words. Forms of a word, letter case and accents make no difference."""

    def __init__(self, values: Iterable[Words], except_for: Set[Words] = frozenset()) -> None:
        """Take the words of the values, but not those that are all of the words of one of `except_for`."""
        words = set(values) - except_for - {frozenset()}
        self._by_word: dict[str, list[Words]] = defaultdict(list)
        for value in words:
            if len(value) <= FEW_WORDS:
                self._by_word[min(value, key=lambda word: (-len(word), word))].append(value)
            else:
                for word in value:
                    self._by_word[word].append(value)

    def __bool__(self) -> bool:
        return bool(self._by_word)

    def are_named_in(self, words: Words) -> bool:
        """Return whether a text with these words names one of the values."""
        return any(
            len(value & words) >= (len(value) if len(value) <= FEW_WORDS else MOST_OF * len(value))
            for word in words & self._by_word.keys()
            for value in self._by_word[word]
        )


def former_value(fact: Fact, superseded: Iterable[Fact]) -> str | None:
    """Return the value that a fact replaced, or None where an agent is not told one.

    `superseded` are the facts whose last period an assertion of this fact has ended. The former value belonged to the
    same attribute of the same subject and held until this fact began. A value is not told if it was wrong from the
    start, withdrawn, expired or erased; nor if it is long, says nothing new, or does not read like a plain value.
    """
    if not fact.is_served:
        return None
    former = [
        candidate
        for candidate in superseded
        if candidate.status is Status.SUPERSEDED
        and candidate.retired_by in fact.assertion_ids
        and candidate.valid_to is not None
        and _attribute(candidate) == _attribute(fact)
    ]
    last = max(former, key=lambda candidate: (candidate.valid_to, candidate.said_at, candidate.id), default=None)
    value = last.value.strip() if last is not None else ""
    is_new = value.casefold() not in f"{fact.statement} {fact.value}".casefold()
    return value if is_new and _SHORT_VALUE.fullmatch(value) and not is_instruction(value) else None


def _attribute(fact: Fact) -> tuple[str, str, str]:
    return fact.kind, fact.subject.casefold(), fact.attribute.casefold()
