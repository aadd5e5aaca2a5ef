"""The answer format of the prompt `judge-2`, as it was released: it is in use until the recordings answer `judge-3`.

The names, docstrings and descriptions of the classes are sent to the model.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field, create_model

from afterword.extractors.model.answer_shape import Shape

FORMER_JUDGE = "judge-2"

_Relation: Any = StrEnum(  # type: ignore[misc]  # its members are made of the list of their names
    "Relation", {name.upper(): name for name in "same narrows changes corrects retracts beside".split()}
)
_Relation.__doc__ = "How a later-said assertion relates to an earlier-said one."

_Finding: Any = create_model(
    "Finding",
    __config__=ConfigDict(extra="ignore"),
    __doc__="What the model says of one pair.",
    pair=(int, Field(description="The number of the pair.")),
    reason=(str, Field(description="Why, in at most twelve words.")),
    relation=(_Relation, Field(description="How the later-said statement relates to the earlier-said one.")),
    same_subject=(bool, Field(description="Whether both are about one and the same person, place or thing.")),
)


class FormerFindings(Shape):
    """What the model answers: one finding for each pair."""

    model_config = ConfigDict(extra="ignore", title="Findings")

    findings: list[_Finding]


FormerFindings.__name__ = FormerFindings.__qualname__ = "Findings"
