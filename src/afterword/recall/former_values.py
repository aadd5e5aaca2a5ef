"""The value that a fact replaced, where an agent may be told it. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from afterword.facts.fact import Fact, Status
from afterword.facts.timeline import ValidityPeriod
from afterword.privacy.prompt_injection import is_instruction

# A few plain words. Nothing that closes a note, opens another, quotes somebody, looks like a secret or gives an order.
_SHORT_VALUE = re.compile(r"[^\W_][\w .,'’&+/%°€$£-]{0,39}")

FactSource = TypeVar("FactSource")
"""Whatever a store keeps a fact in."""


def predecessors(
    sources: Iterable[FactSource], spans: Callable[[FactSource], Sequence[ValidityPeriod]]
) -> dict[str, list[FactSource]]:
    """Return the facts that held and were superseded, by the assertion that ended their last period.

    `spans` returns the validity periods of a fact.
    """
    by_successor: dict[str, list[FactSource]] = defaultdict(list)
    for source in sources:
        last = next(reversed(spans(source)), None)
        if last is not None and last.by is not None and last.ending is Status.SUPERSEDED:
            by_successor[last.by].append(source)
    return by_successor


def former_value(
    fact: Fact, by_successor: Mapping[str, list[FactSource]], load: Callable[[FactSource], Fact | None]
) -> str | None:
    """Return the value that a fact replaced, or None where an agent is not told one.

    The former value belonged to the same attribute of the same subject and held until this fact began. A value is not
    told if it was wrong from the start, withdrawn, expired or erased; nor if it is long, says nothing new, or does not
    read like a plain value.
    """
    if not fact.is_served:
        return None
    loaded = [load(source) for assertion_id in fact.assertion_ids for source in by_successor.get(assertion_id, ())]
    former = [candidate for candidate in loaded if candidate is not None and _is_replaced_by(candidate, fact)]
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
