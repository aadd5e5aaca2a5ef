"""Patterns of passwords in sentences about access, and of answers to security questions. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from afterword.privacy import secret_values as values
from afterword.privacy.secret_kinds import SecretKind, SecretSentencePattern, Span
from afterword.privacy.secret_vocabulary import (
    ACCESS,
    ASKING_IN,
    CODE,
    DEVICE,
    EMAIL,
    IS,
    LOCKED,
    LOCKING,
    OPENING,
    PERSONAL_TOPIC,
    SECURITY_QUESTION,
    SIGNING_IN,
    USE,
)

_FARTHEST = 80
PROGRAM = r"sha-?\d|bcrypt|argon2|\bhash|regex|password-protected|\bdef \w|=\s?\w+\(|import |return |console\."
"""Words of a sentence about hashes, or of a line of program code."""
_LOCKS = re.compile(rf"\b(?:{LOCKING}|{SIGNING_IN}|{OPENING})\b", re.IGNORECASE)
_ACCESS = re.compile(rf"(?<!\w)(?:{ACCESS})(?!\w)", re.IGNORECASE)
_USED = re.compile(
    rf"\b(?:{USE}|{IS}|using|needs?|thing|with|mit|con|avec|com|met|hab|pongo|metto|ponho|vul|brauch\w*|necesit\w*"
    rf"|{CODE}(?: (?:secret|segreto|secreto))?|(?:with|mit|con|avec|com|met) [\w.@-]{{2,40}} (?:and|und|y|et|e|en))\s{{1,2}}[\"'“„«`]?\Z",
    re.IGNORECASE,
)
"""The words before a value that somebody uses or enters."""
_EMAIL_BEFORE = re.compile(rf"{EMAIL}(?:\s?[,:/|]|\s(?:and|und|y|et|e|en))\s\Z", re.IGNORECASE)


def _access_word_span(match: re.Match[str]) -> Span | None:
    """Return the span of a password in a sentence about access: a word that looks like one, or that opens something."""
    striking = values.likely_password_span(match)
    if striking is None:
        return None
    is_used = _USED.search(match.string, max(0, striking[0] - 30), striking[0]) is not None
    before = match.string[max(0, striking[0] - _FARTHEST) : striking[0]]
    if _EMAIL_BEFORE.search(before):
        return values.random_password_span(match)
    if (before.endswith("/ ") and _ACCESS.search(match.string)) or (is_used and _LOCKS.search(match.string)):
        return striking
    return values.random_password_span(match) if is_used or _ACCESS.search(match.string) else None


def _security_answer_span(match: re.Match[str]) -> Span | None:
    """Return the span of the answer to a security question: a name, or a word that its sentence calls the answer."""
    start, end, value = values.span_and_bare_value(match)
    is_name = value[:1].isupper() or any(map(str.isdigit, value)) or match["answer"] is not None
    return (start, end) if is_name and values.may_be_password(value) else None


ACCESS_WORD = SecretSentencePattern(
    "word like a password in a sentence about access",
    SecretKind.PASSWORD,
    (rf"(?<!\w)(?:{ACCESS}|{DEVICE}|{LOCKED}|{CODE}|(?<=@)\w[\w.-]{{2,40}})(?!\w)",),
    r"(?<![^\s\"'`(«“„:=|>])(?P<value>(?=[^\s\d]{0,40}\d)[^\s\"'`<>“”„«»|]{6,100}+)",
    tuple("0123456789"),
    _access_word_span,
    PROGRAM,
)

_ANSWERS = r"(?:answer|antwort|respuesta|réponse|risposta|resposta|antwoord)"
_SECURITY_ANSWER = SecretSentencePattern(
    "answer to a security question",
    SecretKind.PASSWORD,
    (SECURITY_QUESTION,),
    rf"(?:(?P<answer>\b{_ANSWERS}\b(?:[^.!?\n\d:=]{{0,60}}?(?:\s{IS}|\s?[:=–-]))?|\A\W{{0,3}}(?={_ANSWERS}))|\b{IS}|[:=–-])[\s:]{{1,3}}"
    r"(?P<value>[^\s.,;:!?]{3,40}(?:\s(?-i:[^\W\d_a-zà-ÿ])[\w'-]{1,30}){0,2})(?=(?:\s(?:sein|zijn|ser|être))?[\s.!,;)\"”]{0,3}(?:\Z|(?-i:[A-Z])|,))",
    (
        "question",
        "answer",
        "frage",
        "pregunta",
        "respuesta",
        "réponse",
        "domanda",
        "risposta",
        "pergunta",
        "resposta",
        "vraag",
        "antwoord",
        "word",
        "phrase",
        "wort",
        "palabra",
        "mot ",
        "parola",
        "palavra",
        "woord",
    ),
    _security_answer_span,
    is_far_reaching=True,
)
_PERSONAL_ANSWER = replace(
    _SECURITY_ANSWER,
    name="answer that an account asks for",
    topics=(rf"\b(?:{PERSONAL_TOPIC})", rf"\b(?:{ASKING_IN})\b"),
    hints=tuple(
        (
            "maiden|first|name|birth|mädchen|geburts|erste|soltera|primer|jeune fille|premi|nubile|prim|solteira|"
            "meisjes|eerste"
        ).split("|")
    ),
    is_far_reaching=False,
)

ANSWER_PATTERNS = (_SECURITY_ANSWER, _PERSONAL_ANSWER)
