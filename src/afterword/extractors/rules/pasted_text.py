"""Find what a turn contains but its speaker did not say: texts to work on, pasted mails, code, examples. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ASKING = (
    r"(?:(?:hi|hey|hello|ok|okay|so|now|and|also|then|please|pls|just|can you|could you|would you)\b[, ]{0,2}){0,4}"
)
_AT_START = rf"(?:^|(?<=[.!?,]\s)|(?<=[.!?]\s\s))[ \t]*{_ASKING}"
_OF_TEXTS = (
    r"(?:translate|proof-?read|summari[sz]e|rewrite|reword|rephrase|paraphrase|shorten|polish|transcribe|"
    r"spell-?check|correct|improve)"
)
_OF_ANYTHING = (
    r"(?:write|say|repeat|reply|respond|answer|fix|edit|check|review|format|convert|draft|compose|explain|read|"
    r"print|complete|continue|analy[sz]e|classify|extract|parse)"
)
_PAPER = (
    r"(?:e-?mails?|mails?|letters?|messages?|sms|notes?|texts?|posts?|replies|reply|article|transcript|chat|bio|log)"
)
_SPOKE = r"(?:wrote|writes|said|says|replied|replies|answered|answers|texted|told (?:me|us)|asked|posted)"
_SELF = r"(?:I|I'm|I've|I'd|my|we|we're|our)\b"

_TO_THE_END = re.compile(
    "|".join(
        (
            rf"{_AT_START}(?:{_OF_TEXTS}|{_OF_ANYTHING})\b[^\n:.!?]{{0,120}}:(?=\s)",
            rf"{_AT_START}{_OF_TEXTS}\b[^\n:.!?]{{0,120}}(?:\s[–—-]{{1,2}}\s|\n)",
            rf"{_AT_START}{_OF_TEXTS}\b[^\n:.!?]{{0,60}}\b(?:following|this|below)\b[^\n:.!?]{{0,40}}\.(?=\s)",
            rf"\b(?:here(?:'s| is| are| comes?)|this is|below is|got|received|from)\b[^\n:.!?]{{0,80}}\b{_PAPER}\b"
            rf"[^\n:.!?]{{0,60}}:(?=\s)",
            rf"\b{_PAPER} from [^\n:.!?]{{1,60}}:(?=\s)",
            rf"\b(?:he|she|they|(?-i:[A-Z])[\w'-]{{1,30}}) {_SPOKE}\b(?: [\w']+){{0,5}}:(?=\s)",
            r"^[ \t]*subject: ",
            r"^[ \t]*dear (?!assistant|bot|agent|ai\b|team|all\b|everyone)[^\n]{1,60},[ \t]*$",
        )
    ),
    re.IGNORECASE | re.MULTILINE,
)
_EXAMPLE = re.compile(
    rf"(?:(?:^|(?<=[.!?]\s))[ \t]*(?:(?:as an|for|an?) )?(?:example|instance)\s?[:,]"
    rf"|\b(?:as an|for) (?:example|instance)\s?:"
    rf"|\b(?:e\.g\.|(?:as an|for) (?:example|instance))[ \t]?,?[ \t](?={_SELF}))(?:[ \t]*\n)?[^\n]*",
    re.IGNORECASE | re.MULTILINE,
)
_CODE = re.compile(
    r"^(?:[ \t]+(?:#|/\*)[^\n]*"
    r"|[ \t]*//[^\n]*"
    r"|[ \t]*(?:async def|def|class|func|function|fn|public|private|static|const|var|import|return)\b"
    r"[^\n]*[:(){};][ \t]*"
    r"|[ \t]{2,}(?![-*•])[^\n]*[{};][ \t]*"
    r"|[^\n#/=(){};]{1,200}[=(){};][^\n#/]{0,200}[ \t](?:#|//)[ \t][^\n]*)$",
    re.MULTILINE,
)


def pasted_passages(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each passage that the speaker of a turn passes on rather than says.

    A text to work on or someone's mail reaches to the end of the turn, an example to the end of its line.
    """
    opened = _TO_THE_END.search(text)
    if opened:
        yield opened.end(), len(text)
    for passage in (*_EXAMPLE.finditer(text), *_CODE.finditer(text)):
        yield passage.span()
