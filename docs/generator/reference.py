"""The pages and parts of pages that are made from the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from generator.command_pages import command_tables
from generator.python_pages import public_names
from generator.service_pages import mcp_tools, rest_operations
from generator.setting_pages import setting_tables
from generator.table_pages import store_tables

BEGIN, END = "<!-- made by `make reference` -->", "<!-- end of what is made -->"

PARTS: Mapping[str, Callable[[], str]] = {
    "docs/reference/commands.md": command_tables,
    "docs/reference/settings.md": setting_tables,
}
"""Pages of the repository, and what stands between their two markers."""

PAGES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "reference/api.md": (
        "# Every public name\n\nFirst what `import afterword` offers; then the errors, other public modules, and the "
        "classes that these names take, hold or return. [The Python interface](python.md) is a first view.",
        public_names,
    ),
    "reference/rest.md": (
        "# REST\n\nEach operation of the [service](../service.md). `GET /openapi.json` returns the same as a document.",
        rest_operations,
    ),
    "reference/mcp.md": (
        "# MCP\n\nWhat [MCP clients](../mcp.md) are offered, with its schemas.",
        mcp_tools,
    ),
    "reference/tables.md": (
        "# Tables of the store\n\nThey are the same in SQLite and PostgreSQL. Write to them through afterword only.",
        store_tables,
    ),
}
"""Pages of the site that are in no repository: title and beginning, and what follows."""


def write_parts(repository: Path) -> None:
    """Write what is made from the code between the markers of the pages."""
    for name, make in PARTS.items():
        page = repository / name
        page.write_text(with_part(page.read_text(encoding="utf-8"), make()), encoding="utf-8")


def with_part(text: str, part: str) -> str:
    """Return the text with another part between its markers."""
    before, _, rest_of_page = text.partition(BEGIN)
    _, end, after = rest_of_page.partition(END)
    assert end, f"{BEGIN} and {END} are missing"
    return f"{before}{BEGIN}\n\n{part}\n\n{END}{after}"


def write_pages(folder: Path) -> None:
    """Write the pages that are made from the code to the folder of the site's pages."""
    for name, (beginning, make) in PAGES.items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"{beginning}\n\n{make()}\n", encoding="utf-8")
