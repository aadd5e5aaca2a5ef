"""`python -m generator stage FOLDER` copies the pages of the site to a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from generator.staging import stage

REPOSITORY = Path(__file__).parent.parent.parent


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(prog="generator")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("stage").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    stage(REPOSITORY, arguments.folder)


main()
