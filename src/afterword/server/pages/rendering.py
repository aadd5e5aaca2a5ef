"""Templates become pages: the environment, its filters, and the headers of every page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from afterword import Scope, Spending
from afterword.client.values import dollars
from afterword.server.pages.reader import Reader
from afterword.server.pages.static_files import versioned
from afterword.server.pages.texts import LANGUAGES, catalogue

PREFIX = "/pages"
HEADERS = {
    # Images as data are the icons of the style sheet.
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    # With "no-referrer" a browser would send no Origin with a form either.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LONGEST_SHOWN = 400
"""How many characters of a text a list shows; the page of the fact or session shows all of it."""


@cache
def environment() -> Environment:
    """Return the environment of the templates. Everything that is inserted is escaped."""
    made = Environment(
        loader=PackageLoader("afterword.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shortened"] = shortened
    made.filters["dollars"] = amount
    made.filters["part"] = lambda text: quote(str(text), safe="")
    made.globals["address"] = address
    made.globals["scope_path"] = scope_path
    made.globals["versioned"] = versioned
    made.globals["languages"] = LANGUAGES
    return made


@cache
def prepare_pages() -> None:
    """Compile every template, and read the texts and the files, so that no visitor waits for it."""
    made = environment()
    for name in made.list_templates():
        made.get_template(name)
    for language in LANGUAGES:
        catalogue(language)
    versioned("styles.css")


def render_template(
    request: Request, reader: Reader, template: str, values: Mapping[str, Any], *, status: int = 200
) -> HTMLResponse:
    """Return a page. `values` are the variables of its template."""
    content = (
        environment()
        .get_template(template)
        .render({"t": reader.text, "t_or": reader.text_or, "reader": reader, "path": request.url.path, **values})
    )
    return HTMLResponse(content, status, headers=HEADERS)


def scope_path(scope: Scope) -> str:
    """Return where the pages of a scope are."""
    return "/".join((PREFIX, *(quote(part, safe="") for part in (scope.tenant, str(scope.kind), scope.id))))


def address(path: str, **query: object) -> str:
    """Return a path with those parameters that are set."""
    parameters = {name: value for name, value in query.items() if value not in (None, "", (), [])}
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path


def shortened(text: str, length: int = LONGEST_SHOWN) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= length else f"{text[:length].rstrip()} …"


def amount(spent: Spending) -> str:
    """Return a sum in dollars, a dash where no price is known."""
    return "–" if spent.usd is None else dollars(spent.usd)
