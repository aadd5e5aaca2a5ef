"""Find a secret in the turn after one that announces it: the answer to a question, or the rest of a sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from afterword.privacy import secret_values as values
from afterword.privacy.normalisation import plain_form
from afterword.privacy.secret_kinds import SecretKind, Span, compiled_expression
from afterword.privacy.secret_vocabulary import (
    CODE,
    IS,
    KEY,
    MAIDEN_NAME,
    ONE_TIME,
    PASSWORD,
    PIN,
    SECURITY_QUESTION,
    WEAK_PASSWORD,
)

_TAIL = 300
_LONGEST_ANSWER = 400
_MOST_WORDS = 12

_NAMES_OF_KINDS = (
    (SecretKind.CODE, rf"(?<![\w-])(?:{ONE_TIME}|{PIN})(?![\w])"),
    (SecretKind.CODE, rf"(?<![\w-])(?:{CODE})(?![\w])"),
    (SecretKind.PASSWORD, rf"(?<![\w-])(?:{PASSWORD}|{SECURITY_QUESTION}|{MAIDEN_NAME}|{WEAK_PASSWORD})s?(?![\w])"),
    (SecretKind.TOKEN, rf"(?<![\w-])(?:{KEY})s?(?![\w])"),
    (
        SecretKind.CARD,
        r"\b(?:card number|kartennummer|número de (?:la )?tarjeta|numéro de (?:la )?carte|numero (?:della )?carta|número do cartão|cvc|cvv)\b",
    ),
)
_ASKS_FOR_VALUE = (
    r"\b(?:asks?|wants|requires|demands|expects|verlangt|fragt|pide|demande|chiede|richiede|pede|vraagt|what|which|tell|enter|type|give|send|provide|share|need|say|wie|welche\w*|nenn\w*|gib|geben|sag\w*|brauche|"
    r"eingeben|cu[áa]l|qu[ée]|dime|d[íi]ga\w*|escrib\w+|introdu\w+|necesito|quel\w*|donne\w*|dites|entre[rz]?|saisi\w*|tape[rz]?|dis|besoin|qual\w*|dimmi|dici|dica|mi dà|inseri\w+|"
    r"scrivi|serve|diga|digite|insira|preciso|wat|welk\w*|geef\w*|voer|zeg\w*|noem\w*|nodig)\b"
)
_ENDS_OPEN = rf"(?:(?:\s{IS}(?:\s(?:the following|as follows|this|folgendes|wie folgt|el siguiente|la siguiente|le suivant|la seguente|o seguinte|a seguinte|het volgende|als volgt))?|\s?[:=]|\s?\.\.\.|…)|\b(?:now|next|jetzt|ahora|maintenant|ora|agora|nu)|\b(?:here (?:comes|is)|hier kommt|aquí va|voici|ecco|aqui vai|hier komt)\b[^.!?\n]{{0,60}})\s*[:.…]{{0,4}}\s*$"
_QUESTION = re.compile(r"[^.!?\n]*\?\s*$|[^.!?\n]+[.!]?\s*$")
_LEAD = re.compile(
    r"(?:[\s,.:;!–—-]|(?:sure|then|i think|maybe|ah|oh|well|right|dann|entonces|alors|allora|então|dan|ok(?:ay)?|yes|yeah|yep|of course|certainly|here(?: you go| it is| you are)?|please|take|use|try|it'?s|it is|it was|its|"
    r"that(?: is|'s| was| would be| will be)|this is|the (?:password|pin|code|key|one) is|my (?:password|pin|code|key) is|is|"
    r"ja|klar|gern\w*|sicher|bitte|nimm|das ist|der ist|die ist|es ist|ist|lautet|hier|sí|si|claro|es|pon|usa|toma|la|el|oui|bien sûr|voilà|voici|c'est|prends|"
    r"certo|ecco|è|usa|metti|sim|claro|é|use|aqui está|ja hoor|natuurlijk|het is|die is|dat is|neem|hier is)(?=[\s,.:;!?–—-]|$))*+",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"[\s,.!;–—-]*(?:thanks?(?: you)?|please|danke|bitte|gracias|por favor|merci|s'il (?:te|vous) plaît|grazie|obrigad[oa]|bedankt|dank je|:\)|;\))?[\s.!]*$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\s\"'`“”„«»<>]{3,200}")


@dataclass(frozen=True, slots=True)
class SecretAnnouncement:
    """A turn that announces a secret of this kind: who said it, and whether it asks for the secret.

    If `is_question`, somebody else gives the secret, otherwise the same speaker. If `is_certain`, a plain word may be the
    secret, otherwise only a word that looks like one.
    """

    kind: SecretKind
    speaker: str
    is_question: bool
    is_certain: bool

    def expects_secret_from(self, speaker: str) -> bool:
        """Return whether this speaker is expected to give the secret."""
        return (self.speaker != speaker) == self.is_question


def secret_announcement_in(text: str, speaker: str) -> SecretAnnouncement | None:
    """Return the announcement of a secret at the end of a turn, or None."""
    tail = plain_form(text[-_TAIL:]).text.rstrip()
    # A match ends at most one sentence, so the search begins after the last sentence end inside the text.
    begin = max(tail.rfind(stop, 0, -1) for stop in ".!?\n") + 1
    match = _QUESTION.search(tail, begin)
    last = match.group() if match else tail
    kind = next((kind for kind, name in _NAMES_OF_KINDS if compiled_expression(name, re.IGNORECASE).search(last)), None)
    if kind is None or "[redacted: " in last:
        return None
    if compiled_expression(_ENDS_OPEN, re.IGNORECASE).search(last):
        return SecretAnnouncement(kind, speaker, is_question=False, is_certain=True)
    asks = bool(compiled_expression(rf"{_ASKS_FOR_VALUE}|{MAIDEN_NAME}", re.IGNORECASE).search(last))
    is_short_question = last.rstrip().endswith("?") and len(last.split()) <= 5
    return SecretAnnouncement(kind, speaker, is_question=True, is_certain=asks or is_short_question)


def announced_secrets(text: str, announcement: SecretAnnouncement, *, is_expected: bool) -> list[Span]:
    """Return the spans of the secrets in the turn after an announcement.

    `is_expected` says whether the turn's speaker is expected to give the secret. Otherwise only a turn of a single word
    counts.
    """
    if len(text) > _LONGEST_ANSWER:
        return []
    plain = plain_form(text)
    spans = _answer_words(plain.text)
    if not is_expected and len(spans) > 1:
        return []
    chosen = [span for span in spans if _looks_like_secret(plain.text[slice(*span)], announcement.kind)]
    may_be_plain = is_expected and announcement.is_certain and announcement.kind is SecretKind.PASSWORD
    if not chosen and may_be_plain and _is_plain_answer(plain.text, spans):
        chosen = spans[:1]
    return [plain.original_span(first, last) for first, last in chosen]


def _answer_words(text: str) -> list[Span]:
    """Return the spans of the first words of an answer, without the words that introduce it and those that thank."""
    lead = _LEAD.match(text)
    start = lead.end() if lead else 0
    end = max(start, next(_POLITE.finditer(text)).start())  # it matches at the end of any text
    spans = [match.span() for match in _WORD.finditer(text, start, end)][:_MOST_WORDS]
    # A word of punctuation keeps one character, so that no span is empty.
    return [(first, first + max(1, len(text[first:last].rstrip(".,;:?)")))) for first, last in spans]


def _is_plain_answer(text: str, spans: Sequence[Span]) -> bool:
    """Return whether an answer is a single word that may be a password, or begins with one and a sign after it."""
    if not spans:
        return False
    first, last = spans[0]
    is_alone = len(spans) == 1 or text[last : last + 1] in (",", ".", ";")
    return is_alone and values.may_be_password(text[first:last])


def _looks_like_secret(word: str, kind: SecretKind) -> bool:
    """Return whether a word looks like a secret of this kind."""
    digits = sum(character.isdigit() for character in word)
    if kind in (SecretKind.CODE, SecretKind.CARD):
        return digits >= 3 and digits * 2 >= len(word)
    if kind is SecretKind.TOKEN:
        return len(word) >= 12 and digits >= 1
    return values.looks_random(word) or (digits >= 4 and digits == len(word))
