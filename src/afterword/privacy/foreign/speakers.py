"""Tell labels that name a speaker ("Tom:") from labels that name a topic ("Budget:"). Pure."""

from __future__ import annotations

import re

from afterword.facts.words import lower_without_accents
from afterword.privacy.foreign.given_names import GIVEN_NAMES

# Words before a colon that introduce what the person says, not another speaker.
TOPICS = frozenset(
    (
        "note notes nb ps pps p.s fyi edit update updates correction clarification reminder question questions answer answers request task goal goals aim "
        "context background summary tldr tl;dr btw also plan plans idea ideas problem issue issues example examples important warning hint tip tips info "
        "information details detail reason reasons result results conclusion todo status news topic title subject name names age job work occupation "
        "profession employer company home city town country address location place date dates time times day days deadline budget price cost costs "
        "diet food allergy allergies health medication preference preferences likes dislikes hobby hobbies interests family wife husband partner kids "
        "children son daughter pets pet dog cat car language languages schedule travel trip destination seat meal breakfast lunch dinner weekend monday tuesday "
        "wednesday thursday friday saturday sunday january february march april may june july august september october november december morning "
        "afternoon evening night today tomorrow yesterday first second third fourth fifth finally next then last step option options rule rules decision "
        "decisions agreed remember confirmed confession disclaimer spoiler fact facts truth thing things point points part parts section and but so or yes no ok "
        "okay well sure great thanks sorry hello hi hey oh hmm actually anyway basically honestly seriously meaning namely i.e e.g total item items list "
        "description requirements requirement constraints constraint style tone format length audience "
        "hinweis frage notiz wichtig nachtrag ziel aufgabe nota pregunta importante objetivo remarque question objectif domanda obiettivo pergunta vraag let op "
        "about us about me my me myself mine i we our side short long bonus exception exceptions caveat favourite favorite favourites setup stack hardware software "
        "phone email mail password pin http https ftp mailto re fwd fw aw wg project version"
    ).split()
)
SPEAKER_ROLES = frozenset(
    (
        "user human customer client guest patient tenant landlord interviewer interviewee candidate applicant caller agent assistant bot ai system chatgpt gpt claude "
        "gemini copilot tool support operator moderator host reporter witness speaker narrator friend colleague boss manager teacher student doctor nurse "
        "mum mom mother dad father brother sister grandma grandpa neighbour neighbor admin sender recipient author q a "
        "them they he she him her you other sprecher sprecherin intervistato intervistata patientin zeuge testigo testimone témoin getuige "
        "benutzer kunde kundin nutzer mensch usuario cliente utilisateur utente usuário gebruiker klant"
    ).split()
)
PRONOUNS = frozenset("them they he she him her you tu du other a q user".split())
TITLES = frozenset(
    "mr mrs ms dr prof professor herr frau señor señora sr sra monsieur madame signor signora senhor senhora".split()
)
DETERMINERS = frozenset(
    "my our the a an this that mein meine der die mi el la mon ma le mio mia il meu minha o mijn de".split()
)
ABOUT_SOMEBODY = re.compile(r"\b(?:he|she|him|her|his|hers|they|them|their)\b", re.IGNORECASE)
_AFTER_NAMES = frozenset("from in at of and aus von de van".split())
OWN_LABELS = frozenset("me i myself ich yo moi io eu ik".split())
# No topic words are known in other scripts, so every such label counts as a name.
NOT_LATIN = re.compile(r"(?=[^\n]{0,30}(?![A-Za-zÀ-ɏ])[^\W\d_])[^\W\d_]{2,30}")
GENERIC_NAMES = frozenset("user human customer client you person owner me participant".split())


def name_words(name: str) -> list[str]:
    """Return the words of a name in lower case and without full stops."""
    return name.casefold().replace(".", "").split() or [""]


def is_personal_name(name: str) -> bool:
    """Return whether a label is the name of a person."""
    words = name_words(name)
    if words[0] in TOPICS:
        return False
    if words[0] in GIVEN_NAMES or lower_without_accents(words[0]) in GIVEN_NAMES:
        return len(words) == 1 or words[1] in _AFTER_NAMES or name.split()[1][:1].isupper() or name.islower()
    # An unknown word may be a topic, so a name that is not in the list needs two or three capitalised words.
    is_full_name = len(words) in (2, 3) and all(word[0].isupper() and word[1:].islower() for word in name.split())
    return is_full_name and words[-1] not in TOPICS
