"""Commands about the settings: which are in force, and a profile to begin with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from afterword.cli.app import Json, app
from afterword.cli.output import console, print_json, table


@app.command(name="config")
def config_command(as_json: Json = False) -> None:
    """Show each setting, its value, and where the value comes from. Keys are not shown."""
    from afterword.setting_list import settings_with_sources

    settings = settings_with_sources()
    if as_json:
        print_json([asdict(setting) for setting in settings])
        return
    rows = [(setting.name, setting.value, setting.source) for setting in settings]
    console().print(table("settings", ("setting", "value", "source"), rows))


@app.command(name="init")
def init_command(
    path: Annotated[Path, typer.Argument(help="The profile to write.")] = Path("afterword.toml"),
) -> None:
    """Write a profile that shows every setting with its default. An existing file is not changed."""
    from afterword.errors import FileInvalid
    from afterword.setting_list import commented_profile

    try:
        with path.open("x", encoding="utf-8") as profile:
            profile.write(commented_profile())
    except FileExistsError:
        raise FileInvalid(f"{path} exists already; name another file, or change it by hand") from None
    except OSError as error:
        raise FileInvalid(f"{path} cannot be written: {error.strerror}; name another file") from None
    console().print(f"{path} written; remove the # of what you change, then look at `afterword config`")
