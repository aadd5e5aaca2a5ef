"""How results are written as JSON, and the schema of what is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from operator import itemgetter
from typing import Any

import pytest

from afterword.facts.scopes import Scope
from afterword.json_form import JsonForm, Nullable, itself


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Leaf:
    colour: Colour = Colour.RED
    fell_at: datetime | None = None


@dataclass(frozen=True)
class Tree:
    scope: Scope
    is_old: bool = True
    leaves: tuple[Leaf, ...] = ()
    first: Leaf | None = None
    rings: dict[int, Leaf] = field(default_factory=dict)
    names: tuple[str, ...] = ("oak",)


MIRA = Scope.user("mira")
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
leaf_json: JsonForm[Leaf] = JsonForm("Leaf", "A leaf.", colour=str, fell_at=Nullable(datetime))
tree_json: JsonForm[Tree] = JsonForm(
    "Tree",
    "A tree.",
    scope=Scope,
    old=(bool, "is_old"),
    leaves=[leaf_json],
    first=Nullable(leaf_json),
    rings={str: leaf_json},
    names=[str],
    count=(int, lambda tree: len(tree.leaves)),
)
EMPTY: dict[str, Any] = {
    "scope": "default/user/mira",
    "old": True,
    "leaves": [],
    "first": None,
    "rings": {},
    "names": ["oak"],
    "count": 0,
}
RED = {"colour": "red", "fell_at": None}


@pytest.mark.parametrize(
    ("tree", "written"),
    [
        (Tree(MIRA), EMPTY),
        (
            Tree(MIRA, leaves=(Leaf(fell_at=NOON), Leaf()), first=Leaf(), rings={7: Leaf()}),
            {
                **EMPTY,
                "leaves": [{"colour": "red", "fell_at": "2026-03-02T12:00:00Z"}, RED],
                "first": RED,
                "rings": {"7": RED},
                "count": 2,
            },
        ),
    ],
)
def test_a_result_is_written_as_its_form_declares(tree: Tree, written: dict[str, Any]) -> None:
    assert tree_json(tree) == written
    assert list(tree_json(tree)) == list(EMPTY)
    assert tree_json.model.model_validate(written).count == written["count"]


def test_an_instant_keeps_its_offset() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=2)))
    assert leaf_json(Leaf(fell_at=there))["fell_at"] == "2026-03-02T14:00:00+02:00"


def test_a_form_takes_the_parts_of_another() -> None:
    by_path: JsonForm[Tree] = JsonForm("First", "The first leaf.", names=[str], **leaf_json.parts_at("first"))
    assert by_path(Tree(MIRA, first=Leaf())) == {"names": ["oak"], **RED}
    by_place: JsonForm[tuple[int, Tree]] = JsonForm("Pair", "A tree.", **by_path.parts_at(itemgetter(1)))
    assert by_place((0, Tree(MIRA, first=Leaf()))) == {"names": ["oak"], **RED}
    whole: JsonForm[list[Leaf]] = JsonForm("Leaves", "All leaves.", leaves=([leaf_json], itself))
    assert whole([Leaf()]) == {"leaves": [RED]}


def test_the_schema_says_what_is_written() -> None:
    schema = tree_json.model.model_json_schema()
    assert (schema["title"], schema["description"], schema["required"]) == ("Tree", "A tree.", list(EMPTY))
    parts = schema["properties"]
    assert (parts["scope"]["type"], parts["old"]["type"], parts["count"]["type"]) == ("string", "boolean", "integer")
    assert parts["leaves"]["items"] == parts["rings"]["additionalProperties"] == parts["first"]["anyOf"][0]
    assert {"type": "null"} in parts["first"]["anyOf"]
    assert schema["$defs"]["Leaf"]["properties"]["fell_at"]["anyOf"][0] == {"type": "string", "format": "date-time"}
