"""Render pages: templates, translated texts, the reader's language and time zone, style sheets and scripts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote, unquote, urlencode
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from afterword import Scope, Spending
from afterword.client.values import dollars
from afterword.server.request_paths import encoded_path

LANGUAGES = {"en": "English", "de": "Deutsch"}
DEFAULT_LANGUAGE = "en"

LANGUAGE_COOKIE, ZONE_COOKIE, KEYS_COOKIE = "afterword_language", "afterword_zone", "afterword_keys"
LONGEST_ZONE_NAME = 64
PREFIX = "/pages"
HEADERS = {
    # The style sheet contains its icons as data URLs.
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    # With "no-referrer", a browser would not send the header Origin with a form either.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LONGEST_SHOWN = 400
"""How many characters of a text a list shows; the page of the fact or session shows all of it."""


@cache
def texts_by_key(language: str) -> Mapping[str, str]:
    """Return the texts of a language by their dotted keys."""
    content = (files(__package__) / "texts" / f"{language}.toml").read_text(encoding="utf-8")
    return dict(_flattened(tomllib.loads(content)))


def _flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, content in table.items():
        yield from (
            _flattened(content, f"{prefix}{key}.") if isinstance(content, dict) else [(f"{prefix}{key}", content)]
        )


@cache
def _sentence_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the keys of the sentences that afterword itself stores in English, each with a pattern that matches it."""
    return tuple(
        (key, re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(text)), re.DOTALL))
        for key, text in texts_by_key(DEFAULT_LANGUAGE).items()
        if key.startswith("sentence.")
    )


def preferred_language(accepted: str) -> str:
    """Return the first known language of an Accept-Language header."""
    weighted = []
    for place, part in enumerate(accepted[:500].split(",")):
        name, _, weight = part.strip().partition(";q=")
        try:
            weighted.append((-float(weight or 1), place, name.split("-")[0].lower()))
        except ValueError:
            continue
    return next((name for _, _, name in sorted(weighted) if name in LANGUAGES), DEFAULT_LANGUAGE)


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The display settings of whoever reads a page."""

    language: str
    zone_name: str
    has_shortcuts: bool

    @classmethod
    def of(cls, request: Request) -> ReaderSettings:
        """Return the display settings in the cookies and headers of a request."""
        language = request.cookies.get(LANGUAGE_COOKIE, "")
        if language not in LANGUAGES:
            language = preferred_language(request.headers.get("accept-language", ""))
        zone_name = unquote(request.cookies.get(ZONE_COOKIE, "UTC"))
        known = zone_name if zone_by_name(zone_name) is not None else "UTC"
        return cls(language, known, request.cookies.get(KEYS_COOKIE) != "off")

    def text(self, key: str, **values: object) -> str:
        """Return the text with this key in the reader's language. Raises `KeyError` for an unknown key."""
        text = texts_by_key(self.language)[key]
        return text.format(**values) if values else text

    def text_or(self, key: str, default: str) -> str:
        """Return the text with this key, or `default` where there is none."""
        return texts_by_key(self.language).get(key, default)

    def translated_sentence(self, text: str) -> str:
        """Translate a sentence that afterword itself stores in English. Return any other text unchanged."""
        is_looked_up = self.language != DEFAULT_LANGUAGE and len(text) <= LONGEST_SHOWN
        for key, pattern in _sentence_patterns() if is_looked_up else ():
            if match := pattern.fullmatch(text):
                return self.text(key, **match.groupdict())
        return text

    def number(self, number: float, digits: int = 0) -> str:
        """Format a number for the reader's language, with this many decimal places."""
        return self._with_local_separators(f"{number:,.{digits}f}")

    def dollars(self, spent: Spending) -> str:
        """Format a cost in dollars, or return a dash if no price is known."""
        return "–" if spent.usd is None else self._with_local_separators(dollars(spent.usd))

    def _with_local_separators(self, number: str) -> str:
        return number.translate(str.maketrans(",.", self.text("format.marks")))

    def instant(self, at: datetime) -> str:
        """Format an instant in the reader's time zone."""
        return at.astimezone(zone_by_name(self.zone_name) or UTC).strftime(self.text("format.instant"))

    def local_day(self, at: datetime) -> str:
        """Format the date of an instant in its own time zone, which is that of the speaker."""
        return at.strftime(self.text("format.day"))


@lru_cache(maxsize=200)
def zone_by_name(name: str) -> tzinfo | None:
    """Return the time zone with this name, or None if there is no such zone."""
    if not 0 < len(name) <= LONGEST_ZONE_NAME or not name.isascii():
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


class CachedStaticFiles(StaticFiles):
    """The style sheets and scripts. A browser keeps them for five minutes, and then asks whether they have changed."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        """Return a file, also to visitors who are not signed in."""
        answer = super().file_response(*arguments, **options)
        answer.headers["Cache-Control"] = "public, max-age=300"
        return answer


STATIC_FILES: ASGIApp = GZipMiddleware(CachedStaticFiles(packages=[(__package__, "static")]))


@cache
def template_environment() -> Environment:
    """Return the Jinja environment of the templates, which escapes all inserted values."""
    made = Environment(
        loader=PackageLoader("afterword.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(shortened=shortened, part=lambda text: quote(str(text), safe=""))
    made.globals.update(refusal_detail=refusal_detail, address=address, scope_path=scope_path, languages=LANGUAGES)
    return made


@cache
def preload_templates_and_texts() -> None:
    """Compile every template and load the texts, so that no visitor waits for it."""
    made = template_environment()
    for name in made.list_templates():
        made.get_template(name)
    for language in LANGUAGES:
        texts_by_key(language)


def render_template(
    request: Request, reader: ReaderSettings, template: str, values: Mapping[str, Any], *, status: int = 200
) -> HTMLResponse:
    """Return a page. `values` are the variables of its template."""
    shared = {"t": reader.text, "t_or": reader.text_or, "reader": reader, "path": page_address(request)}
    content = template_environment().get_template(template).render({**shared, **values})
    return HTMLResponse(content, status, headers=HEADERS)


def scope_path(scope: Scope) -> str:
    """Return the path below which the pages of a scope are."""
    return "/".join((PREFIX, *(quote(part, safe="") for part in (scope.tenant, str(scope.kind), scope.id))))


def page_path_or_empty(target: str) -> str:
    """Return a path if it leads to one of the pages, else an empty text, so that no redirect leads to another site."""
    path = target.partition("?")[0]
    # A browser takes a backslash for a slash, and an encoded dot for a dot, but an encoded slash only for itself.
    leads_elsewhere = "//" in path or "\\" in path or not {".", ".."}.isdisjoint(map(unquote, path.split("/")))
    return target if path.startswith(f"{PREFIX}/") and target.isprintable() and not leads_elsewhere else ""


def page_address(request: Request) -> str:
    """Return the address that opens the page again. For a submitted form, this is the page that contained the form."""
    path, query = encoded_path(request), request.url.query
    if request.method != "GET":
        return path.rpartition("/")[0]
    return f"{path}?{query}" if query else path


def address(path: str, **query: object) -> str:
    """Return a path with query parameters. Parameters without a value are left out."""
    parameters = {name: value for name, value in query.items() if value not in (None, "", (), [])}
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path


def refusal_detail(reason: str, detail: str) -> str:
    """Return the details of a refusal, such as the missing quote. The page shows the reason separately."""
    return detail.removesuffix(texts_by_key(DEFAULT_LANGUAGE).get(f"refused.{reason}", "")).removesuffix(": ")


def shortened(text: str, length: int = LONGEST_SHOWN) -> str:
    """Return a text, cut to this length."""
    return text if len(text) <= length else f"{text[:length].rstrip()} …"
