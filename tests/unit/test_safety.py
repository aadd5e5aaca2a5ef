"""Which facts are flagged without anybody's word: health, allergies, safety, standing instructions."""

from __future__ import annotations

import pytest

from afterword.facts.assertions import Kind
from afterword.facts.safety import concerns_health_or_safety, is_standing_instruction, must_never_be_missed

HEALTH = [
    "Tomas is severely allergic to shellfish.",
    "Lena never eats raw fish.",
    "Matteo has coeliac disease and needs strictly gluten-free food.",
    "Juni carries an adrenaline pen.",
    "Kofi must not run until 15 February because of an irritated tendon.",
    "Kofi does not take caffeine while running, because a gel gave him palpitations.",
    "Die Nutzerin ist hochgradig allergisch gegen Erdnüsse.",
    "Er ist an Zöliakie erkrankt.",
    "Es alérgico a la penicilina.",
    "Elle est enceinte et prend des médicaments.",
    "È celiaca.",
    "Ela tem intolerância à lactose.",
    "Zij is zwanger.",
    "In an emergency call Ruth first.",
]
ORDINARY = [
    "Lena prefers window seats on trains.",
    "The deploy key rotates every 90 days.",
    "Amara likes to cook for long on Sundays.",
    "The team chose PostgreSQL.",
    "Ihr Bruder arbeitet als Krankenpfleger.",
    "Su madre es enfermera.",
    "The gallery opens at ten.",
]
INSTRUCTIONS = [
    "The user wants short answers without emojis.",
    "Always reply in Spanish.",
    "Maeve wants to be contacted by email only and never by phone.",
    "The assistant must ask before it books anything.",
    "Wants to be called TK.",
    "Antworten sollen kurz sein.",
    "Préfère des réponses courtes.",
]


@pytest.mark.parametrize("statement", HEALTH)
def test_health_and_safety_are_recognised(statement: str) -> None:
    assert concerns_health_or_safety(statement)


@pytest.mark.parametrize("statement", ORDINARY)
def test_ordinary_facts_are_not_flagged(statement: str) -> None:
    assert not any(must_never_be_missed(kind, statement) for kind in Kind)


@pytest.mark.parametrize("statement", INSTRUCTIONS)
def test_standing_instructions_are_recognised_as_preferences_only(statement: str) -> None:
    assert is_standing_instruction(Kind.PREFERENCE, statement)
    assert not is_standing_instruction(Kind.ENTITY, statement)


def test_the_attribute_and_the_value_count_too() -> None:
    assert must_never_be_missed(Kind.ENTITY, "It is peanuts.", "food_allergy", "peanuts")
