"""Find values that agents must no longer be told, and choose the former value that is told with a fact. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Set

from afterword.facts.fact import Fact, Status
from afterword.privacy.prompt_injection import is_instruction

FEW_WORDS = 4
"""A value of more words than this counts as named if most of its words occur."""
MOST_OF = 0.7

Words = frozenset[str]

# A few plain words. Nothing that closes a note, opens another, quotes somebody, looks like a secret or gives an order.
_SHORT_VALUE = re.compile(r"[^\W_][\w .,'’&+/%°€$£-]{0,39}")


class ValueMatcher:
    """A set of values to find in texts, each given by its words in the form of `terms`: stemmed, without accents."""

    def __init__(self, values: Iterable[Words], except_for: Set[Words] = frozenset()) -> None:
        """Take the words of each value. Values that are in `except_for` are left out."""
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

    def is_any_named_in(self, words: Words) -> bool:
        """Return whether a text with these words names one of the values."""
        return any(
            len(value & words) >= (len(value) if len(value) <= FEW_WORDS else MOST_OF * len(value))
            for word in words & self._by_word.keys()
            for value in self._by_word[word]
        )


def told_former_value(fact: Fact, superseded: Iterable[Fact]) -> str | None:
    """Return the value that a fact replaced, or None if an agent is not told one.

    `superseded` are the facts that an assertion of this fact ended. The former value is that of the same attribute of
    the same subject, and held until this fact began. It is not told if it was wrong from the start, withdrawn, expired
    or erased. Nor is it told if it is long, adds nothing to the fact, or does not read like a plain value.
    """
    if not fact.is_served:
        return None
    former = [
        candidate
        for candidate in superseded
        if candidate.status is Status.SUPERSEDED
        and candidate.retired_by in fact.assertion_ids
        and candidate.valid_to is not None
        and _attribute_key(candidate) == _attribute_key(fact)
    ]
    last = max(former, key=lambda candidate: (candidate.valid_to, candidate.said_at, candidate.id), default=None)
    value = last.value.strip() if last is not None else ""
    is_new = value.casefold() not in f"{fact.statement} {fact.value}".casefold()
    return value if is_new and _SHORT_VALUE.fullmatch(value) and not is_instruction(value) else None


def _attribute_key(fact: Fact) -> tuple[str, str, str]:
    return fact.kind, fact.subject.casefold(), fact.attribute.casefold()
