"""Copy the pages of the project to one folder for the site, with links that lead there.

Pages lie in `docs` and `benchmarks` and in the root of the project, where people read them without the site too. Other
files that a page links to, such as examples, become pages that show them.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

LINK = re.compile(
    r"(?P<code>^(?P<fence>```+|~~~+).*?^(?P=fence)|`[^`\n]+`)|\]\((?P<target>[^)\s]+)\)", re.DOTALL | re.MULTILINE
)
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contribute.md",
    "SECURITY.md": "security-policy.md",
}


def stage(repository: Path, folder: Path) -> list[Path]:
    """Write every page to `folder`, and return where they are. The folder is emptied before."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = [
        *(repository / name for name in ROOT_PAGES),
        *(repository / "docs").rglob("*.md"),
        *(repository / "benchmarks").glob("*.md"),
    ]
    shutil.copytree(repository / "docs" / "images", folder / "images")
    shutil.copy(repository / "docs" / "site.css", folder)
    sources: set[Path] = set()
    for page in pages:
        text = _with_moved_links(page, repository, sources)
        _write(folder / place_of(page.relative_to(repository)), text)
    for source in sources:
        language = {".py": "python", ".toml": "toml", ".yaml": "yaml"}.get(source.suffix, "text")
        title = source.relative_to(repository).as_posix()
        shown = f"# `{title}`\n\n~~~~{language}\n{source.read_text(encoding='utf-8')}~~~~\n"
        _write(folder / place_of(source.relative_to(repository)), shown)
    return sorted(folder.rglob("*.md"))


def place_of(path: Path) -> Path:
    """Return where a file of the repository lies among the pages of the site."""
    if path.parts[0] == "docs":
        return Path(*path.parts[1:])
    if path.suffix != ".md":
        return Path("files") / f"{path.as_posix()}.md"
    return Path(ROOT_PAGES.get(path.as_posix(), path))


def _with_moved_links(page: Path, repository: Path, sources: set[Path]) -> str:
    """Return the text of a page with links for its place in the site, and add linked files that are no pages."""
    here = place_of(page.relative_to(repository)).parent

    def moved(link: re.Match[str]) -> str:
        target = link["target"]
        if not target or "://" in target or target.startswith(("#", "mailto:")):
            return link[0]
        path, _, anchor = target.partition("#")
        file = Path(os.path.normpath(page.parent / path)).relative_to(os.path.normpath(repository))
        if file.suffix not in (".md", ".png"):
            sources.add(repository / file)
        return f"]({Path(os.path.relpath(place_of(file), here)).as_posix()}{'#' if anchor else ''}{anchor})"

    return LINK.sub(moved, page.read_text(encoding="utf-8"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
