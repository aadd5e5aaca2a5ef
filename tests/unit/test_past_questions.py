"""Which questions are about the past, in the languages of the patterns."""

from __future__ import annotations

import pytest

from afterword.recall.questions import is_about_the_past

PAST = """
Where did I live before Oslo? | Is there still a sponsor? | Have we ever used Redis? | What happened last Tuesday?
What did he use in between? | Since when has Ida worked there? | How many times did we move? | Was Petra a vegan?
Wo habe ich vor Oslo gewohnt? | Gibt es noch einen Sponsor? | Was trank ich früher? | Wie oft sind wir umgezogen?
Was war im Februar geplant? | Was haben wir beschlossen? | Wer hat das inzwischen ersetzt? | Was geschah 2024?
¿Dónde vivía antes? | ¿Sigo siendo vegano? | ¿Qué pasó hace dos semanas? | ¿Dónde trabajaba yo?
¿Desde cuándo vive Ida allí? | ¿Quién lo sustituyó? | ¿Tuve alguna vez un gato? | ¿Qué hablamos ayer?
Où habitais-je avant ? | Qu'est-ce qui n'est plus vrai ? | Ai-je eu un chat ? | Où vivions-nous au printemps ?
Qui l'a remplacé ? | Depuis quand y travaille-t-elle ? | Que s'est-il passé hier ? | Jusqu'à quand était-ce valable ?
Dove lavoravo? | Ho mai avuto un gatto? | Che cosa è successo due settimane fa? | Chi lo ha sostituito?
Che cosa non vale più? | Quante volte abbiamo cambiato casa? | Abbiamo ancora uno sponsor? | Dove abitavo prima?
Onde eu trabalhava? | Já tive um gato? | O que costumava beber? | O que aconteceu há duas semanas?
Desde quando a Ida trabalha lá? | Quem o substituiu? | Ainda temos patrocinador? | Onde morei?
Waar heb ik gewoond? | Hebben we nog een sponsor? | Waar werkte ik? | Wat zeiden we de laatste keer?
Hoe vaak zijn we verhuisd? | Wie heeft hem vervangen? | Heb ik ooit een kat gehad? | Wat dronk ik vroeger?
"""
PRESENT = """
Where do I live? | Which seat do I like? | Book a table for tomorrow. | Write to Ida about the supplier.
Was soll ich heute kochen? | Was mag ich? | Wer wohnt hier? | Wo ist mein Geld? | Was ist prima an der Wohnung?
¿Dónde vivo? | ¿Qué cocino hoy? | Quel siège est-ce que je préfère ? | Que cuisiner ce soir avec du riz ?
Dove abito? | Quale posto preferisco? | Onde moro? | O que cozinho hoje? | Waar woon ik? | Wat kook ik vandaag?
"""


def questions(text: str) -> list[str]:
    return [question.strip() for line in text.split("\n") for question in line.split(" | ") if question.strip()]


@pytest.mark.parametrize("question", questions(PAST))
def test_a_question_about_the_past_is_recognised(question: str) -> None:
    assert is_about_the_past(question)


@pytest.mark.parametrize("question", questions(PRESENT))
def test_a_question_about_the_present_is_none(question: str) -> None:
    assert not is_about_the_past(question)
