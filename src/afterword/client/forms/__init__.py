"""The JSON forms of the results of `Afterword`, for `--json` of the command line and for the HTTP service."""
