"""Make the reference from the code, or the pages of the site.

`python -m generator reference` writes the parts of pages that are made from the code.
`python -m generator stage FOLDER` writes the pages of the site to a folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from generator.reference import write_pages, write_parts
from generator.staging import stage

REPOSITORY = Path(__file__).parent.parent.parent


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(prog="generator")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("reference")
    commands.add_parser("stage").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "reference":
        write_parts(REPOSITORY)
    else:
        stage(REPOSITORY, arguments.folder)
        write_pages(arguments.folder)


if __name__ == "__main__":
    main()
