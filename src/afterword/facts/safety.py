"""Recognise facts that agents must always be told: health, allergies, safety, and standing instructions. Pure.

There are word lists in English, German, Spanish, French, Italian, Portuguese and Dutch. In doubt a fact is flagged,
since a flag mainly decides which facts come first if not all fit. A person can set and remove the flag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from afterword.facts.assertions import Assertion, Kind
from afterword.facts.words import lower_without_accents

_HEALTH = (
    # the same stem in several languages
    r"[aà]l+erg\w*|anaph?[yi]la\w*|intol+er(?:ant|anc|anz|an)\w*|coeliac\w*|cœliaque\w*|coeliaque\w*|celiac\w*|celiach\w*"
    r"|celiaqu\w*|coeliakie|zoliakie|diabet\w*|insulin\w*|epilep\w*|epiless\w*|epilet\w*|asthma\w*|asma\w*|astma\w*"
    r"|adrenalin\w*|epinephrin\w*|epipen\w*|penicil+in\w*|pacemaker|marcapas\w*|medica\w*|medicin\w*|medicijn\w*",
    # English
    r"prescri(?:bed|ptions?)|pregnan\w*|breastfeed\w*|palpitations?|heart (?:conditions?|disease|attacks?|failure)"
    r"|blood (?:pressure|thinners?|type)|seizures?|migraines?|wheelchairs?|disab(?:led|ilit\w+)"
    r"|surger(?:y|ies)|injur\w*"
    r"|chronic\w*|diseases?|illness\w*|(?:seriously|mentally|terminally) ill|syndrome|gluten|lactose|dialysis|chemo\w*"
    r"|cancer|dementia|depress(?:ed|ion)|anxiety|overdose\w*|sober|alcoholic|addict\w*|immun\w*|first aid|hospitali\w*"
    r"|(?:never|cannot|can['’]t|must not|mustn['’]t|must never|may not|is not allowed to|do(?:es)? not)"
    r" (?:eat|drink|take caffeine|swallow|run|lift|swim|fly)s?|never eats|never drinks",
    # German
    r"unvertraglich\w*|schwanger\w*|medikament\w*|herz(?:schrittmacher|infarkt|fehler|krank)\w*|blutverdunn\w*|blutdruck"
    r"|rollstuhl\w*|\w*krankheit\w*|erkrank\w*|behinder(?:t|ung)\w*|krebs",
    # Spanish, Portuguese, Italian
    r"embaraz\w*|silla de ruedas|enferm(?:o|a|os|as|edad|edades)|gravid\w*|remedios?|cadeira de rodas|doen(?:ca|te)s?"
    r"|incinta|farmac[oi]|sedia a rotelle|malatt\w*|malat[oaie]|tension arterial",
    # French, Dutch
    r"enceinte|grossesse|medicament\w*|fauteuil roulant|malad(?:e|es|ie|ies)|zwanger\w*|rolstoel\w*"
    r"|ziekte\w*|suikerziek\w*",
)
_SAFETY = (
    r"emergenc\w*|hazard\w*|danger\w*|unsafe|safety|poison\w*|toxi[cqk]\w*|tossic\w*|chok(?:e|es|ing)|carbon monoxide"
    r"|suicid\w*|self[- ]harm\w*|restraining order|stalk(?:ed|er|ing)\w*|abusive|domestic violence|life[- ]threatening",
    r"notfall\w*|gefahr(?!en)\w*|giftig\w*|lebensgefahr\w*|emergenci\w*|emergenz\w*|peligr\w*|perig\w*|pericol\w*|urgences?"
    r"|noodgeval\w*|gevaar\w*",
)
_INSTRUCTION = (
    r"(?:the |this |your |an? )?(?:assistants?|agents?|bots?|chatbots?) (?:should|must|may|shall|(?:is|are|has) to)"
    r"|(?:your|the assistant's) (?:answers?|repl(?:y|ies)|responses?)",
    r"(?:answers?|repl(?:y|ies)|responses?|explanations?|summaries)"
    r" (?:should|must|in|to be|that|without|with|as|of|at most|are|is)"
    r"|(?:short|brief|long|concise|detailed|plain|direct|formal|informal) (?:answers?|repl(?:y|ies)|responses?)"
    r"|(?:answer|reply|respond)(?:ed|s)? (?:in|with|without|only|always|never|briefly|formally)|emojis?"
    r"|bullet points?",
    r"(?:be |to be )(?:called|addressed|contacted|spoken to)|(?:is|are) (?:to be )?addressed"
    r"|(?:always|never|do not|don['’]t|must not) (?:answer|reply|respond|suggest|recommend|book|order|contact|call"
    r"|mention|share|send|schedule|remind|ask|use|write|quote)\w*|from now on|without (?:being )?asked",
    r"antwort\w*|nie vorschlagen|respuestas?|responde\w*|contest(?:a|ar|es)|reponses?|repond\w*|rispost[ae]|rispond\w*"
    r"|respostas?|responda\w*|antwoord\w*|(?:gesiezt|geduzt)|tutoy\w*|vouvoy\w*|tutear\w*",
)


def _any_word(*parts: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(parts)})\b")


_HEALTH_OR_SAFETY = _any_word(*_HEALTH, *_SAFETY)
_STANDING_INSTRUCTION = _any_word(*_INSTRUCTION)


def concerns_health_or_safety(text: str) -> bool:
    """Return whether a text names a matter of health, of an allergy or of safety."""
    return bool(_HEALTH_OR_SAFETY.search(lower_without_accents(text)))


def is_standing_instruction(kind: Kind, text: str) -> bool:
    """Return whether a fact tells an assistant how to behave from now on. It is a preference or a decision."""
    return kind is not Kind.ENTITY and bool(_STANDING_INSTRUCTION.search(lower_without_accents(text)))


def must_never_be_missed(kind: Kind, statement: str, attribute: str = "", value: str = "") -> bool:
    """Return whether a fact is flagged by its words: health, allergies, safety, or a standing instruction."""
    words = f"{statement} {attribute.replace('_', ' ')} {value}"
    return concerns_health_or_safety(words) or is_standing_instruction(kind, statement)


def is_assertion_flagged(assertion: Assertion) -> bool:
    """Return whether an assertion is flagged: as a person or a model decided, or else by its words."""
    if assertion.is_flagged is not None:
        return assertion.is_flagged
    return must_never_be_missed(assertion.kind, assertion.statement, assertion.attribute, assertion.value)


def is_fact_flagged(flags: Sequence[tuple[bool, bool]]) -> bool:
    """Return whether a fact is flagged.

    `flags` has an entry for each assertion of the fact, in the order of saying: whether a person entered it, and its
    flag.
    """
    by_people = [flag for is_entered_by_person, flag in flags if is_entered_by_person]
    return by_people[-1] if by_people else any(flag for _, flag in flags)
