"""What is left of a question for a search, in several languages."""

from __future__ import annotations

import pytest

from afterword.recall.questions import question_terms


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Was mag ich zum Frühstück?", {"mag", "zum", "fruhstuck"}),
        ("Où est-ce que j'habite ?", {"habit"}),
        ("¿Qué día fue el plomero?", {"dia", "fue", "plomero"}),
        ("Welke stoel heb ik graag?", {"stoel", "graag"}),
        ("Can Clement drive the company's van himself?", {"clement", "drive", "compani", "van"}),
        ("Which van is in Oslo?", {"van", "oslo"}),
    ],
)
def test_common_words_of_its_own_language_are_left_out(question: str, words: set[str]) -> None:
    assert words <= question_terms(question)
    assert not {"ich", "was", "que", "est", "el", "ik", "the", "heb"} & question_terms(question)
