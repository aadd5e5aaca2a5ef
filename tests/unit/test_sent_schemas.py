"""Models are sent the JSON schema of their answer: class names, docstrings and field descriptions are part of it.

A changed schema is another request: recorded replies no longer fit, and models may answer otherwise.
"""

from __future__ import annotations

import hashlib
import json

import pytest
from pydantic import BaseModel

from afterword.extractors.candidates import Answer
from afterword.extractors.model.answer_schemas import stand_in_class
from afterword.extractors.model.judge import Findings
from afterword.extractors.model.modes import Probe

SENT = {
    "Answer": "20ee1fa7a1ba9c6c",
    "Findings": "02ecda024c01d352",
    "Probe": "bedc4ddb5692c3a2",
}


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("Answer", Answer),
        ("Findings", Findings),
        ("Probe", Probe),
    ],
)
def test_the_schema_of_an_answer_stays_as_it_was_released(name: str, answer: type[BaseModel]) -> None:
    sent = json.dumps(stand_in_class(answer).openai_schema)
    assert hashlib.sha256(sent.encode()).hexdigest()[:16] == SENT[name]


def test_the_schema_of_an_extraction_stays_small() -> None:
    """It is sent with every window."""
    assert len(json.dumps(Answer.model_json_schema())) / 4 < 900


def test_instructor_walks_through_no_field_of_an_answer() -> None:
    """It would do so eight times for each request, which takes a sixth of the request's processor time."""
    assert stand_in_class(Answer).model_fields == {}
    assert type(stand_in_class(Answer).model_validate_json('{"facts": []}')) is Answer
