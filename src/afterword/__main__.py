"""`python -m afterword` is the command line."""

from afterword.cli import main

main()
