"""Estimate how many tokens a text has for a model, without a tokenizer. Pure."""

import math
import re

from afterword.text_caches import text_cache

BYTES_PER_TOKEN = 3

# Fitted to six tokenizers by `benchmarks/token_estimates.py`, see `docs/quality.md`.
LINE = 1.1
ENGLISH_WORD = 1.08
CAPITAL = 0.17
LETTER_AFTER_SIX = 0.82
OTHER_WORD = 0.82
LETTER_AFTER_THREE = 0.51
DIGIT = 1.16
SIGN = 0.5
SCRIPTS = (
    (0.64, re.compile("[\u0370-\u052f]")),  # Greek and Cyrillic
    (1.01, re.compile("[\u0590-\u07ff]")),  # Hebrew and Arabic
    (1.66, re.compile("[\u3400-\u9fff]")),  # Chinese characters
    (1.00, re.compile("[\u3000-\u30ff\uff00-\uffef]")),  # kana, wide signs
    (1.96, re.compile("[\uac00-\ud7af]")),  # Korean
    (0.80, re.compile("[\u00a0-\u00bf\u2010-\u2027]")),  # typographic signs
)
"""The tokens of one character of each script."""

_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_DIGIT = re.compile("[0-9]")
_SIGN = re.compile(r"[!-/:-@\[-`{-~]")
_ENGLISH = re.compile(r"\b(?:the|and|of|to|is|are|was|for|with|on|has|from|at|by|my|you|it|I|that)\b")
_UNKNOWN = re.compile(
    "[^ -~\u00a0-\u024f\u0370-\u052f\u0590-\u07ff\u2010-\u2027\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]"
)
_SPACES = re.compile("  +|^ | $")
_FEW_WORDS = 4


def utf8_size(text: str) -> int:
    """Return the number of UTF-8 bytes of a text; a lone surrogate counts three."""
    return len(text.encode("utf-8", "surrogatepass"))


def tokens_by_byte_size(text: str) -> int:
    """Return an estimate of the tokens of a text: a third of its UTF-8 bytes, rounded up.

    That is too high for English (about four bytes a token) and near the truth for most other languages.
    """
    return -(-utf8_size(text) // BYTES_PER_TOKEN)


def estimated_token_count(text: str) -> int:
    """Return the number of tokens of a text, estimated for the tokenizers of today's models.

    Real counts exceed it by less than a tenth over a block of lines, and are mostly 5 to 20 % lower. The count of
    several lines is the sum of their counts.
    """
    return sum([_line_count(line) for line in text.split("\n")]) if text else 0


@text_cache(20_000)
def _line_count(line: str) -> int:
    return min(math.ceil(LINE + _line_tokens(line)), utf8_size(line) + 1)


def _line_tokens(line: str) -> float:
    words: list[str] = _WORD.findall(line)
    if len(words) < _FEW_WORDS or _ENGLISH.search(line):
        tokens = ENGLISH_WORD * len(words) + CAPITAL * sum(word[0] < "a" for word in words)
        tokens += LETTER_AFTER_SIX * sum([len(word) - 6 for word in words if len(word) > 6])
    else:
        tokens = OTHER_WORD * len(words) + LETTER_AFTER_THREE * sum([len(word) - 3 for word in words if len(word) > 3])
    tokens += DIGIT * len(_DIGIT.findall(line)) + SIGN * len(_SIGN.findall(line)) + len(_SPACES.findall(line))
    if line.isascii():
        return tokens + len(_UNKNOWN.findall(line))
    tokens += utf8_size("".join(_UNKNOWN.findall(line)))
    return tokens + sum(each * len(script.findall(line)) for each, script in SCRIPTS)
