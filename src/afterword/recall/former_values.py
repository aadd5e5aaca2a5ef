"""The value that a fact replaced, where an agent may be told it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterword.facts.fact import Fact, Status
from afterword.privacy.prompt_injection import is_instruction

# A few plain words. Nothing that closes a note, opens another, quotes somebody, looks like a secret or gives an order.
_SHORT_VALUE = re.compile(r"[^\W_][\w .,'’&+/%°€$£-]{0,39}")


def former_value(fact: Fact, superseded: Iterable[Fact]) -> str | None:
    """Return the value that a fact replaced, or None where an agent is not told one.

    `superseded` are the facts whose last period an assertion of this fact has ended. The former value belonged to the
    same attribute of the same subject and held until this fact began. A value is not told if it was wrong from the
    start, withdrawn, expired or erased; nor if it is long, says nothing new, or does not read like a plain value.
    """
    if not fact.is_served:
        return None
    former = [candidate for candidate in superseded if _is_replaced_by(candidate, fact)]
    last = max(former, key=lambda candidate: (candidate.valid_to, candidate.said_at, candidate.id), default=None)
    value = last.value.strip() if last is not None else ""
    is_new = value.casefold() not in f"{fact.statement} {fact.value}".casefold()
    return value if is_new and _SHORT_VALUE.fullmatch(value) and not is_instruction(value) else None


def _is_replaced_by(former: Fact, fact: Fact) -> bool:
    """Whether a fact ended for good when the other one replaced it."""
    if former.status is not Status.SUPERSEDED or former.retired_by not in fact.assertion_ids or former.valid_to is None:
        return False
    return _attribute(former) == _attribute(fact)


def _attribute(fact: Fact) -> tuple[str, str, str]:
    return fact.kind, fact.subject.casefold(), fact.attribute.casefold()
