"""Recognise texts that read like an instruction to an assistant and must not be served as facts. Pure.

Agents read the memory, so a stored command would reach them in every later session. Requests about style ("always
answer in Spanish", "never use emojis") are preferences and pass. The patterns match the forms that commands take in web
pages, tool results and documents. A text that matches is quarantined and shown to a person. It is not deleted.
"""

from __future__ import annotations

import re

from afterword.privacy.normalisation import searchable_text
from afterword.text_caches import text_cache

AROUND = 400
"""The number of characters before and after a quote, within its lines, that are searched for an instruction."""

_MACHINE = (
    r"(?:AIs?|A\.I\.|LLMs?|(?:large )?language models?|chat ?bots?|crawlers?|automated (?:readers?|agents?|systems?)|"
    r"(?:AI|virtual|digital|automated) (?:assistants?|agents?|models?|systems?|bots?|readers?))"
)
_FORMER = r"(?:previous|prior|earlier|preceding|above|former|existing|original|other)"
_RULES = r"(?:instructions|prompts|rules|guidelines|directives|directions|restrictions|commands)"
_INFORM = r"(?:tell|inform|alert|notify|warn|ask|mention (?:it|this|that) to|reveal (?:it|this|that) to)(?:ing)?"
_KEEP = r"(?:remember|save|store|record|memori[sz]e|add|update|note)"
_MEMORY = r"(?:(?:your|its|the (?:assistant|AI)'s) )?(?:(?:long[- ]term|persistent|permanent) )?memory"
_END = r"(?=\s*(?:$|[.,;:!?)\]\"'<]|(?:about|of) (?:this|it|that|these)\b|why\b|first\b))"
_STARTS = r"(?:^|[.;:!?\])\"'] *|\bplease |\bthen |\balso )"
_ADDRESS = r"https?://"
_PRIVATE = (
    r"(?:conversations?|chats?|histor(?:y|ies)|transcripts?|memor(?:y|ies)|facts|passwords?|credentials|tokens?|keys?|"
    r"secrets?|(?:personal|private|user|customer) \w+|everything|messages|contents?)"
)


def _compile_any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE | re.MULTILINE)


_PASTED = _compile_any(
    # "ignore all previous instructions", not a person's "ignore my previous message"
    rf"\b(?:ignor|disregard|overrid|overrul|bypass|forget)\w* (?:(?!my\b|our\b)\w+ ){{0,3}}?{_FORMER} (?:\w+ )?"
    rf"{_RULES}\b",
    r"\b(?:ignor|disregard|overrid|bypass|forget)\w* (?:(?!my\b|our\b)\w+ ){0,2}?(?:system|developer|safety) "
    r"(?:prompt|message|instruction|rule|guideline)s?\b",
    r"\b(?:ignor|disregard|forget)\w* (?:everything|all|anything) (?:above|before this|you (?:were|have been) told)\b",
    r"[<‹«❮]\s{0,3}/?\s{0,3}(?:afterword\W{0,3}memory|tool_calls?|function_calls?|transcript)\b",
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|\[/?INST\]|<</?SYS>>|</?system>",
    # "SYSTEM: you ...", "Assistant: save ...", but not "System: Linux" and not a pasted dialogue
    rf"(?<!\w )\b(?:system|assistant|developer|AI|chat ?bot)(?: (?:prompt|message|note|override|update))? ?: "
    rf"?(?:you\b|please |now |always |never |(?:the )?(?:AI|assistant)\b|ignore|{_KEEP} |do not|send |recommend )",
    # "IMPORTANT INSTRUCTION FOR AI ASSISTANTS:", "[[to the AI that reads this:", "<!-- AI agents processing this page:"
    rf"\b(?:instruction|message|note|notice|attention|important|memo|reminder)s?\b[^.!?\n]{{0,30}}\b(?:to|for) "
    rf"(?:\w+ ){{0,2}}?{_MACHINE}\b[^.!?\n]{{0,40}}:",
    rf"(?:^|[.!?] |[\[(<{{*\"]|--) ?(?:to |attention |dear |hey |note to )?(?:the |any |all |every )?{_MACHINE}\b"
    r"[^.,!?:\n]{0,14}\b(?:read|process|pars|summari|review|index|crawl|scrap|visit)\w*\b[^.!?:\n]{0,40}:",
    rf"\b(?:AI|assistants?|AI agents?|chat ?bots?|LLMs?) (?:must|shall) (?:\w+ )?(?:remember that|memori[sz]e|"
    rf"(?:save|store|record|write)\b[^.\n]{{0,40}}\b(?:{_MEMORY}|as a fact))\b",
    rf"\b(?:do not|don't|never|without|must not|not to|not) {_INFORM} (?:the |this |your )?(?:user|human|operator)s?"
    rf"{_END}",
    r"\b(?:keep|hide) (?:this|it|that) (?:a )?(?:secret |hidden )?from (?:the |your )?(?:user|human)s?\b",
    # The end of the address need not be seen: an image with a query carries data away.
    rf"!\[[^\]\n]{{0,200}}+\]\({_ADDRESS}[^)\s?=$]{{0,500}}+[?=$]",
    # the same in other languages
    r"\bignorier\w* (?:\w+ ){0,2}(?:vorherigen|vorigen|bisherigen|obigen) (?:anweisungen|instruktionen|regeln)",
    r"\bignor\w* (?:\w+ ){0,3}(?:instrucciones|reglas|indicaciones) (?:anteriores|previas)",
    r"\bignor\w* (?:\w+ ){0,3}(?:instructions|consignes|règles) (?:précédentes|antérieures|ci-dessus)",
    r"\bignor\w* (?:\w+ ){0,3}(?:istruzioni|regole) precedenti|\bignor\w* (?:\w+ ){0,3}instruções anteriores",
    r"\bnegeer (?:\w+ ){0,2}(?:vorige|eerdere|voorgaande) (?:instructies|regels)",
)
"""Forms of commands that no person uses about themselves. The text around a match is suspicious too."""

_OBLIGING = _compile_any(r"\byou (?:must|shall)\b")
"""Forms that people use to each other, but that never occur in a fact."""

_COMMANDING = _compile_any(
    r"^ ?(?:system|developer)(?: (?:prompt|message|note|override|instruction))?s? ?:",
    r"\byou (?:will|should|are to) (?:now|henceforth)\b",
    r"\byou are (?:now|henceforth|no longer) (?:an? |the |in |bound|required|allowed|free)",
    r"\b(?:from now on|henceforth),? you\b",
    rf"\b{_KEEP}\b[^.!?\n]{{0,40}}\b(?:to|in|into) {_MEMORY}\b(?! (?:card|leak|pool|map))[^.!?\n]{{0,5}}(?:that\b|:)",
    r"\b(?:record|save|store|add) (?:it |this )?as a fact\b",
    rf"{_STARTS}(?:do not|don't|never) {_INFORM} (?:the |this |your )?(?:owner|customer|client)s?{_END}",
    rf"{_STARTS}(?:send|post|forward|upload|submit|transmit|exfiltrate|leak|append|copy|report)\b[^.!?\n]{{0,80}} to "
    rf"{_ADDRESS}",
    rf"\b(?:send|post|forward|upload|submit|transmit|exfiltrate|leak|append)\b[^.!?\n]{{0,40}}\b{_PRIVATE}\b"
    rf"[^.!?\n]{{0,40}} to {_ADDRESS}",
    r"\b(?:reveal|print|output|repeat|leak|show)\b[^.!?\n]{0,30}\b(?:system prompt|your (?:instructions|prompt)|hidden "
    r"instructions)\b",
    r"\b(?:enter|enable|activate|switch to) (?:DAN|god|jailbreak|unrestricted) mode\b",
)
"""Forms that never occur in a fact, because facts are written in the third person."""


def is_instruction(*texts: str | None) -> bool:
    """Return whether any of the texts of a fact (sentence, value, ...) reads like a command to an assistant."""
    return any(map(_is_command, filter(None, texts)))


@text_cache(4096)  # subjects, attributes and many values are the same in fact after fact
def _is_command(text: str) -> bool:
    return commands_assistant(text) or bool(_OBLIGING.search(searchable_text(text)))


def commands_assistant(text: str) -> bool:
    """Return whether a person's turn reads like a command to an assistant that somebody else wrote."""
    plain = searchable_text(text)
    return bool(_PASTED.search(plain) or _COMMANDING.search(plain))


def has_instruction_around(text: str, start: int, end: int) -> bool:
    """Return whether the lines around `text[start:end]`, which a person sent, hold a command to an assistant.

    A person who pastes a page did not say what the page asks an assistant to remember.
    """
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    line_start = text.rfind("\n", first, start) + 1
    line_end = text.find("\n", end, last)
    return bool(_PASTED.search(searchable_text(text[line_start or first : last if line_end < 0 else line_end])))
