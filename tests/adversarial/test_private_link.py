"""Other users of a machine see the arguments of its processes. The link of `afterword inspect` is in none of them."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from afterword.cli.access_commands import _open_privately

LINK = "http://127.0.0.1:8080/pages/open?link=a-secret_of-43-characters"
BROWSER = """#!/bin/sh
echo "$@" > {folder}/arguments
"""


def test_the_link_is_no_argument_of_the_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "browser"
    program.write_text(BROWSER.format(folder=tmp_path))
    program.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    import webbrowser

    monkeypatch.setattr(webbrowser, "_tryorder", None)
    _open_privately(LINK, str(tmp_path))
    arguments = (tmp_path / "arguments").read_text().strip()
    assert "secret" not in arguments
    page = Path(unquote(urlsplit(arguments).path))
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert re.findall(r"url=([^\"]+)", page.read_text()) == [LINK]
