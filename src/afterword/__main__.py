"""Run the command line as `python -m afterword`."""

from afterword.cli import main

main()
