"""The Markdown pages of the project: their links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

CODE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)


def all_pages(repository: Path) -> list[Path]:
    """Return the README, the pages of the root, and every page of `docs` and `benchmarks`."""
    return [*repository.glob("*.md"), *(repository / "docs").rglob("*.md"), *(repository / "benchmarks").glob("*.md")]


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, and those that it sets itself."""
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.+?)\s*$", CODE.sub("", text), re.MULTILINE)
    anchors: set[str] = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for title in titles:
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        repeated = next(n for n in range(len(titles)) if (f"{anchor}_{n}" if n else anchor) not in anchors)
        anchors.add(f"{anchor}_{repeated}" if repeated else anchor)
    return anchors


def broken_links(pages: Iterable[Path]) -> list[str]:
    """Return the links that lead to no file, or to no heading of it, as "page: target"."""
    return [f"{page.name}: {target}" for page in pages for target in targets(page) if not _is_reachable(page, target)]


def targets(page: Path) -> list[str]:
    """Return the targets of the links and images of a page that stay within the project."""
    text = re.sub(r"`[^`\n]*`", "", CODE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]


def _is_reachable(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    return file.exists() and (not anchor or anchor in headings(file))
