"""What a fact took the place of, as far as a reader may be told it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from afterword.facts.fact import Fact, Status
from afterword.facts.timeline import ValidityPeriod
from afterword.privacy.prompt_injection import is_instruction

# A few plain words: nothing that closes a note, opens another, quotes somebody, stands for a secret or gives an order.
_SHORT = re.compile(r"[^\W_][\w .,'’&+/%°€$£-]{0,39}")


L = TypeVar("L")


def predecessors(held: Iterable[L], spans: Callable[[L], Sequence[ValidityPeriod]]) -> dict[str, list[L]]:
    """Return the facts that were superseded once they had held, by the assertion that ended them last.

    `spans` tells when one of them holds.
    """
    found: dict[str, list[L]] = {}
    for one in held:
        last = next(reversed(spans(one)), None)
        if last is not None and last.by is not None and last.ending is Status.SUPERSEDED:
            found.setdefault(last.by, []).append(one)
    return found


def former_value(fact: Fact, by_successor: Mapping[str, list[L]], laid_out: Callable[[L], Fact | None]) -> str | None:
    """Return the value that a fact took the place of, None where there is none to be told.

    It held until this fact began, of the same side of the same subject. What was wrong from the start, withdrawn,
    expired or asked to be gone is not told, nor what is long, says nothing new, or reads like more than a value.
    """
    if not fact.is_served:
        return None
    before = [laid_out(one) for name in fact.assertion_ids for one in by_successor.get(name, ())]
    fitting = [one for one in before if one is not None and _is_former(one, fact)]
    last = max(fitting, key=lambda one: (one.valid_to, one.said_at, one.id), default=None)
    return last.value.strip() if last is not None and _is_tellable(last.value.strip(), fact) else None


def _is_former(one: Fact, fact: Fact) -> bool:
    """Whether a fact is over for good, since the other one took its place."""
    if one.status is not Status.SUPERSEDED or one.retired_by not in fact.assertion_ids or one.valid_to is None:
        return False
    sides = [(each.kind, each.subject.casefold(), each.attribute.casefold()) for each in (one, fact)]
    return sides[0] == sides[1]


def _is_tellable(value: str, fact: Fact) -> bool:
    said = f"{fact.statement} {fact.value}".casefold()
    return bool(_SHORT.fullmatch(value)) and value.casefold() not in said and not is_instruction(value)
