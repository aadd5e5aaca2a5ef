"""Find text of somebody else in code fences, tags, block quotes, quotation marks and delimiters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from afterword.privacy.foreign.lines import ASKS_TO_FORGET, FIRST_PERSON_WORD, ForeignKind, ForeignStretch, Line
from afterword.privacy.foreign.speakers import NOT_LATIN

_INLINE_TAGS = frozenset("b i em strong u s br code kbd sub sup mark small del ins tt wbr".split())
_ELEMENTS = frozenset(
    "html head body title meta link style script div span p a ul ol li dl dt dd table thead tbody tr td th h1 h2 h3 h4 h5 h6 img form "
    "input button label section article header footer main nav aside figure pre blockquote iframe svg center font hr template textarea".split()
)
_CONTAINERS = frozenset(
    "document documents doc docs page webpage email mail message messages msg quote quoted text content context source file files attachment transcript "
    "chat conversation dialogue dialog user human assistant system tool note notes letter input output data example paste pasted user_message "
    "result results search_result snippet excerpt passage review comment post tweet thread cv resume profile xml rss item entry record".split()
)
_KNOWN_TAGS = _ELEMENTS | _CONTAINERS
_EMPTY_ELEMENTS = frozenset("img hr input meta link".split())
_DECLARATION_ENDS = {"--": "-->", "doctype": ">", "[cdata[": "]]>"}
_TAG = re.compile(
    r"(?<!`)(?:(?<!\w)<|<(?=\s{0,2}/))\s{0,2}(?P<slash>/?)\s{0,2}(?P<name>[A-Za-z][\w:.-]{0,40})(?P<attributes>(?:\s|/)[^<>]{0,400})?>|<!(?P<declaration>--|doctype\b|\[cdata\[)",
    re.IGNORECASE,
)
_BRACKET_TAG = re.compile(
    rf"\[(?P<slash>/?)(?P<name>{'|'.join(sorted(_CONTAINERS))})(?:[= ][^\[\]\n]{{0,80}})?\]", re.IGNORECASE
)
_ESCAPED_TAG = re.compile(r"&(?:lt|#60|#x3c);/?[A-Za-z][^\n&]{0,80}&(?:gt|#62|#x3e);", re.IGNORECASE)
_TEMPLATE = re.compile(r"\{\{[^{}|\n]{1,100}\|[^{}\n]{3,400}\}\}")
_CUT = r"[-=]{2,}\s?(?:8<|>8|✂)\s?[-=]{2,}"
_INLINE_CODE = re.compile(r"```[^`\n]{1,40} [^`\n]{1,40} [^`\n]{1,300}```")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_BLOCK_QUOTE = re.compile(r"(?:>|&gt;|\|\s(?!.*\|\s*$))")
_TRIPLE = re.compile(r'"""|\'\'\'|<<<|>>>')
_RULE = re.compile(
    rf"(?:{_CUT}|-{{3,}}|={{3,}}|\*{{3,}}|_{{3,}}|~{{3,}}|#{{3,}}|[—–─━]{{2,}}|(?:[-=*_#] ){{2,}}[-=*_#])\W*$"
)
_BEGIN = re.compile(
    r"[-=*#<\[({~_/\s]{2,}(?:begin|start|anfang|beginn|inicio|début|inizio|início)\b[^\n]{0,80}$", re.IGNORECASE
)
_END = re.compile(r"[-=*#<\[({~_/\s]{2,}(?:end|stop|ende|fin|final|fine|fim|einde)\b[^\n]{0,80}$", re.IGNORECASE)
_BEGIN_IN_CAPITALS = re.compile(r"(?:BEGIN|START)(?: OF)?(?: [A-Z]{2,20}){1,3}$")
_CARD = re.compile(r"BEGIN:[A-Z]{3,20}$", re.IGNORECASE)
_CURLY = re.compile(r"[“„«][^“”„«»]{1,20000}+[”“»]")
_STRAIGHT = re.compile(r'(?<![\d\w])"|"(?!\w)')
_INLINE = re.compile(
    r'(?<!\w)"([^"\n]{8,400})"(?!\w)'
    r"|(?<!\w)'((?:I|I'm|I've|My|We|We're)\b[^\n]{3,300}?)'(?!\w)"
    r"|(?<=[:,] )'([^'\n]{8,300})'(?!\w)"
)
_FEWEST_QUOTED_WORDS = 3


class _Tag(NamedTuple):
    """A tag in a text. The tag of an empty element (`<hr>`, `<br/>`) both opens and closes it."""

    name: str
    start: int
    end: int
    is_closing: bool
    is_empty: bool = False


def find_markup(text: str, lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield the stretches of a text that are marked off by code fences, tags, quotation marks or delimiters."""
    yield from _fenced_code(lines)
    yield from (ForeignStretch(*match.span(), ForeignKind.CODE) for match in _INLINE_CODE.finditer(text))
    quoted = (line for line in lines if _BLOCK_QUOTE.match(line.head))
    yield from (ForeignStretch(line.start, line.end, ForeignKind.BLOCK_QUOTE) for line in quoted)
    yield from _tagged_text(text)
    yield from _delimited_text(text, lines)
    yield from _quotations(text, lines)


def _fenced_code(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    opened: tuple[str, int] | None = None
    for line in lines:
        fence = _FENCE.match(line.head)
        if opened is None:
            # A line such as "```code``` and more" does not open a block of code.
            if fence and fence.group(1)[0] not in line.head[fence.end() :]:
                opened = fence.group(1), line.start
        elif fence and fence.group(1).startswith(opened[0]) and not line.head[fence.end() :]:
            yield ForeignStretch(opened[1], line.end, ForeignKind.CODE)
            opened = None
    if opened is not None:
        yield ForeignStretch(opened[1], lines[-1].end, ForeignKind.CODE)


def _tagged_text(text: str) -> Iterator[ForeignStretch]:
    """Yield comments, declarations, templates, and the text between tags."""
    tags: list[_Tag] = []
    for match in _TAG.finditer(text):
        name = (match["name"] or match["declaration"]).lower()
        if name in _DECLARATION_ENDS:
            yield _declaration(text, match, _DECLARATION_ENDS[name])
        elif name not in _INLINE_TAGS:
            is_empty = name in _EMPTY_ELEMENTS or (match["attributes"] or "").rstrip().endswith("/")
            tags.append(_Tag(name, match.start(), match.end(), bool(match["slash"]), is_empty))
    for match in _BRACKET_TAG.finditer(text):
        tags.append(_Tag(f"[{match['name'].lower()}]", match.start(), match.end(), bool(match["slash"])))
    yield from _between_tags(text, tags)
    escaped = list(_ESCAPED_TAG.finditer(text))
    if escaped:
        yield ForeignStretch(escaped[0].start(), escaped[-1].end(), ForeignKind.MARKUP)
    yield from (ForeignStretch(*match.span(), ForeignKind.MARKUP) for match in _TEMPLATE.finditer(text))


def _declaration(text: str, opening: re.Match[str], end_mark: str) -> ForeignStretch:
    """Return the stretch from the opening of a comment or declaration to its end mark, or to the end of the text."""
    place = text.find(end_mark, opening.end())
    return ForeignStretch(opening.start(), len(text) if place < 0 else place + len(end_mark), ForeignKind.MARKUP)


def _between_tags(text: str, tags: Sequence[_Tag]) -> Iterator[ForeignStretch]:
    """Yield the stretches from the first opening to the last closing tag of each name."""
    closed = {tag.name: tag.end for tag in tags if tag.is_closing or tag.is_empty}
    opened: dict[str, int] = {}
    for tag in tags:
        if not tag.is_closing:
            opened.setdefault(tag.name, tag.start)
    for name in opened.keys() | closed.keys():
        start, end = opened.get(name), closed.get(name)
        if start is not None and end is not None and start < end:
            yield ForeignStretch(start, end, ForeignKind.MARKUP)
        elif name in _KNOWN_TAGS:
            yield from _text_of_unpaired_tag(text, start, end)


def _text_of_unpaired_tag(text: str, start: int | None, end: int | None) -> Iterator[ForeignStretch]:
    """Yield the rest of a text from a tag that begins a line and is not closed.

    A tag that ends a line and was not opened yields the text before it.
    """
    if start is not None and _begins_line(text, start):
        yield ForeignStretch(start, len(text), ForeignKind.MARKUP)
    elif end is not None and text[end:].lstrip(" \t")[:1] in ("", "\n"):
        yield ForeignStretch(0, end, ForeignKind.MARKUP)


def _begins_line(text: str, place: int) -> bool:
    """Return whether a position begins its line, apart from white space, or follows a colon."""
    return text[:place].rstrip(" \t")[-1:] in ("", "\n", ":")


def _delimited_text(text: str, lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield the text between two horizontal rules, between "BEGIN" and "END", and between triple quotation marks."""
    rules = [line for line in lines if _RULE.match(line.head)]
    if len(rules) >= 2:
        yield ForeignStretch(rules[0].start, rules[-1].end, ForeignKind.DELIMITED)
    begins = [line for line in lines if any(mark.match(line.head) for mark in (_BEGIN, _CARD, _BEGIN_IN_CAPITALS))]
    if begins:
        ends = [line.end for line in lines if _END.match(line.head) or line.head.startswith(("END:", "END ", "END"))]
        last = max((end for end in ends if end > begins[0].start), default=len(text))
        yield ForeignStretch(begins[0].start, last, ForeignKind.DELIMITED)
    marks = list(_TRIPLE.finditer(text))
    if marks:
        last = marks[-1].end() if len(marks) > 1 else len(text)
        yield ForeignStretch(marks[0].start(), last, ForeignKind.DELIMITED)


def _quotations(text: str, lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield quotations of several lines, and those in which somebody speaks in the first person."""
    for match in _CURLY.finditer(text):
        if "\n" in match.group() or _is_speech(match.group()[1:-1]):
            yield ForeignStretch(match.start(), match.end(), ForeignKind.QUOTATION)
    for match in _INLINE.finditer(text):
        # A turn that is in quotation marks as a whole is the speaker's own.
        if _is_speech(match.group(1) or match.group(2) or match.group(3)) and match.group() != text.strip():
            yield ForeignStretch(match.start(), match.end(), ForeignKind.QUOTATION)
    yield from _quotations_in_double_marks(text, lines)
    yield from _quotations_in_single_marks(lines)


def _quotations_in_double_marks(text: str, lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield quotations of several lines in straight marks.

    If a mark at the start of a line is not closed, the quotation reaches to the end of the text.
    """
    opened: int | None = None
    for line in lines:
        marks = [match.start() for match in _STRAIGHT.finditer(text, line.start, line.end)]
        if len(marks) % 2 == 0:
            continue
        if opened is not None:
            yield ForeignStretch(opened, marks[0] + 1, ForeignKind.QUOTATION)
            opened = None
        elif _opens_quotation(text, marks[-1]):
            opened = marks[-1]
    if opened is not None and _begins_line(text, opened):
        yield ForeignStretch(opened, len(text), ForeignKind.QUOTATION)


def _opens_quotation(text: str, place: int) -> bool:
    is_at_start = place == 0 or text[place - 1].isspace() or text[place - 1] in ":(["
    return is_at_start and text[place + 1 : place + 2] not in (" ", "\t")


def _quotations_in_single_marks(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield quotations of several lines in single marks, which open at the start of a line and close at the end of one."""
    opened: Line | None = None
    for line in lines:
        if opened is None and line.head[:1] in ("'", "‘", "‚") and not line.head.endswith(("'", "’")):
            opened = line
        elif opened is not None and line.head.endswith(("'", "’", "'.", "’.")):
            yield ForeignStretch(opened.start, line.end, ForeignKind.QUOTATION)
            opened = None


def _is_speech(words: str) -> bool:
    # No first-person words are known in other scripts, so a quotation in them counts as speech.
    if ASKS_TO_FORGET.search(words) or NOT_LATIN.search(words):
        return True
    return words.count(" ") + 1 >= _FEWEST_QUOTED_WORDS and FIRST_PERSON_WORD.search(words) is not None
