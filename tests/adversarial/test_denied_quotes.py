"""A quote that is cut out of a denial supports nothing; a denial elsewhere takes nothing from it."""

from __future__ import annotations

from afterword.extractors.rejection_reasons import RejectionReason
from afterword.facts.assertions import SpeechAct
from quoting import A, Case, P, grounded, one, refusals

OSLO = "Oslo", "The user lives in Oslo."
REVERSED: tuple[Case, ...] = (
    one("I no longer think that I live in Oslo.", "I live in Oslo", *OSLO),
    one("I don't live in Oslo.", "live in Oslo", *OSLO),
    one("I don’t live in Oslo.", "live in Oslo", *OSLO),
    one("i dont live in Oslo", "live in Oslo", *OSLO),
    one("I do not currently live in Oslo.", "live in Oslo", *OSLO),
    one("I never lived in Oslo.", "lived in Oslo", *OSLO),
    one("I never said I live in Oslo.", "I live in Oslo", *OSLO),
    one("It is not true that I live in Oslo.", "I live in Oslo", *OSLO),
    one("It is false that I live in Oslo.", "I live in Oslo", *OSLO),
    one("I doubt that I live in Oslo.", "I live in Oslo", *OSLO),
    one("Nobody should think I don't, but I don't live in Oslo.", "live in Oslo", *OSLO),
    one("We have no dog.", "dog", "dog", "The user has a dog."),
    one("Ich wohne nicht in Oslo.", "in Oslo", "Oslo", "Die Nutzerin wohnt in Oslo."),
    one("Ich glaube nicht mehr, dass ich in Oslo wohne.", "ich in Oslo wohne", "Oslo", "Die Nutzerin wohnt in Oslo."),
    one("Ich habe keinen Hund.", "Hund", "Hund", "Die Nutzerin hat einen Hund."),
    one("No vivo en Oslo.", "vivo en Oslo", "Oslo", "La usuaria vive en Oslo."),
    one("Je n'habite pas à Oslo.", "à Oslo", "Oslo", "L'utilisatrice habite à Oslo."),
    one("Je n'habite plus à Oslo.", "à Oslo", "Oslo", "L'utilisatrice habite à Oslo."),
    one("Je ne pense plus que j'habite à Oslo.", "j'habite à Oslo", "Oslo", "L'utilisatrice habite à Oslo."),
    one("Non vivo a Oslo.", "vivo a Oslo", "Oslo", "L'utente vive a Oslo."),
    one("Não moro em Oslo.", "moro em Oslo", "Oslo", "O usuário mora em Oslo."),
    one("Ik woon niet in Oslo.", "in Oslo", "Oslo", "De gebruiker woont in Oslo."),
    one("Ik denk niet meer dat ik in Oslo woon.", "ik in Oslo woon", "Oslo", "De gebruiker woont in Oslo."),
    (
        ((A, "You should not book the night train."), (P, "Yes, agreed.")),
        ((1, "book the night train"), (2, "Yes, agreed")),
        "night train",
        "The user books the night train.",
    ),
)
"""Quotes that are cut out of a denial."""
NOT_REVERSED: tuple[Case, ...] = (
    one("No, I live in Oslo.", "I live in Oslo", *OSLO),
    one("No I live in Oslo.", "I live in Oslo", *OSLO),
    one("Nein ich wohne in Oslo.", "ich wohne in Oslo", "Oslo", "Die Nutzerin wohnt in Oslo."),
    one("I don't like it, but I live in Oslo.", "I live in Oslo", *OSLO),
    one("I don't like snow and I live in Oslo.", "I live in Oslo", *OSLO),
    one("I do not ski although I live in Oslo.", "I live in Oslo", *OSLO),
    one("I live in Oslo, not in Bergen.", "I live in Oslo", *OSLO),
    one("I live in Oslo and do not like it.", "I live in Oslo", *OSLO),
    one("Not Bergen but Oslo is my home.", "Oslo is my home", *OSLO),
    one("Don't forget that I live in Oslo.", "I live in Oslo", *OSLO),
    one("Never mind that I live in Oslo.", "I live in Oslo", *OSLO),
    one("You don't know yet that I live in Oslo.", "I live in Oslo", *OSLO),
    one("There is no doubt that I live in Oslo.", "I live in Oslo", *OSLO),
    one("I not only live in Oslo, I work there.", "live in Oslo", *OSLO),
    one("I live in Oslo (no jokes please).", "I live in Oslo", *OSLO),
    one("I can't eat nuts because I'm allergic.", "I'm allergic", "allergic", "The user is allergic to nuts."),
    one("I don't ski. Oslo is my home.", "I don't ski. Oslo is my home.", *OSLO),
    one("I don't live in Bergen, Oslo is my home.", "I don't live in Bergen", *OSLO),
    one("I did not live in Oslo then, I live in Oslo now.", "live in Oslo now", *OSLO),
    one("Nothing is installed except the little hub.", "the little hub", "hub", "The user has a little hub installed."),
    one("I don't eat meat.", "I don't eat meat", "vegetarian, no meat", "The user is vegetarian."),
    one("I can't have nuts.", "I can't have nuts", "nut allergy", "The user is allergic to nuts."),
    one("I can't stand trains.", "I can't stand trains", "trains", "The user dislikes trains."),
    one("We have nothing on Fridays.", "nothing on Fridays", "nothing on Fridays", "Nothing is planned on Fridays."),
    one("I don't eat meat.", "eat meat", "no meat", "The user does not eat meat."),
    one("I no longer eat meat.", "eat meat", "stopped eating meat", "The user stopped eating meat."),
    one("I don't eat meat.", "I don't eat meat", "meat", "The user eats no meat."),
    one("Vergiss nicht, dass ich in Oslo wohne.", "ich in Oslo wohne", "Oslo", "Die Nutzerin wohnt in Oslo."),
    one("Im Mai wohne ich in Oslo.", "wohne ich in Oslo", "Oslo", "Die Nutzerin wohnt im Mai in Oslo."),
    one("Moro no Porto.", "Porto", "Porto", "O usuário mora no Porto."),
    one("Trabalho no banco Alfa.", "banco Alfa", "banco Alfa", "O usuário trabalha no banco Alfa."),
    one("No olvides que vivo en Oslo.", "vivo en Oslo", "Oslo", "La usuaria vive en Oslo."),
    one("No como nunca carne.", "como nunca carne", "nunca carne", "La usuaria nunca come carne."),
    one("N'oublie pas que j'habite à Oslo.", "j'habite à Oslo", "Oslo", "L'utilisatrice habite à Oslo."),
    one("Je n'habite pas à Oslo.", "habite pas à Oslo", "pas à Oslo", "L'utilisatrice n'habite pas à Oslo."),
    one("Non dimenticare che vivo a Oslo.", "vivo a Oslo", "Oslo", "L'utente vive a Oslo."),
    one("Não esqueças que moro em Oslo.", "moro em Oslo", "Oslo", "O usuário mora em Oslo."),
    one("Vergeet niet dat ik in Oslo woon.", "ik in Oslo woon", "Oslo", "De gebruiker woont in Oslo."),
    one("I can't eat bread due to celiac disease.", "celiac disease", "celiac disease", "The user has celiac disease."),
    one("I can't run with my asthma.", "my asthma", "asthma", "The user has asthma."),
    one("I never leave home without my insulin.", "my insulin", "insulin", "The user takes insulin."),
    one("I haven't seen my brother Tom in years.", "my brother Tom", "Tom", "The user has a brother Tom."),
    one("I couldn't live without my dog Rex.", "my dog Rex", "dog Rex", "The user has a dog Rex."),
    one("I don't get home until 7 pm.", "until 7 pm", "home at 7 pm", "The user gets home at 7 pm."),
    one("I'm not happy that we moved to Kafka.", "we moved to Kafka", "Kafka", "The team moved to Kafka."),
    one("no it's on Tuesday", "it's on Tuesday", "Tuesday", "The meeting is on Tuesday."),
    one("I'm not from Oslo I'm from Bergen.", "I'm from Bergen", "Bergen", "The user is from Bergen."),
    one("The deadline isn't Monday it's Tuesday.", "it's Tuesday", "Tuesday", "The deadline is Tuesday."),
    one("Nope the dog is called Rex.", "the dog is called Rex", "Rex", "The dog is called Rex."),
)
DENIED_NOTHING: tuple[Case, ...] = (
    (((A, "You bank at Casa Alta."), (P, "Maybe not.")), ((2, "Maybe not"),), "not Casa Alta", "Not at Casa Alta."),
    (((A, "You bank at Casa Alta."), (P, "No?")), ((2, "No"),), "not Casa Alta", "The user is not at Casa Alta."),
    (((A, "You bank at Casa Alta."), (P, "No.")), ((2, "No"),), "Casa Alta", "The user's bank is Casa Alta."),
    (((A, "You bank at Casa Alta."), (P, "No.")), ((2, "No"),), "no nut allergy", "The user has no nut allergy."),
    (((A, "You eat nuts."), (P, "Hello."), (P, "No.")), ((3, "No"),), "no nuts", "The user eats no nuts."),
)
"""What a person denies counts only where they say no to an agent's words just before, and the fact denies the same."""


def test_a_quote_that_is_cut_out_of_a_denial_supports_nothing() -> None:
    for case in REVERSED:
        assert grounded(case) == RejectionReason.UNSUPPORTED, case
        assert "cut out of a denial" in refusals(case)[0].detail, case


def test_a_denial_elsewhere_in_the_sentence_takes_nothing_from_a_quote() -> None:
    for case in NOT_REVERSED:
        assert grounded(case) is None, case


def test_what_is_no_longer_so_may_be_withdrawn_with_a_cut_quote() -> None:
    case = one("I no longer live in Oslo.", "live in Oslo", *OSLO)
    assert grounded(case, SpeechAct.RETRACT) is None


def test_a_no_denies_only_what_an_agent_has_just_said() -> None:
    for case in DENIED_NOTHING:
        assert grounded(case) is not None, case
