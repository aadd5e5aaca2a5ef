"""What is known and when it holds: scopes, transcripts, assertions and verdicts, and the facts derived from them.

Pure functions and frozen values: no clock, no database, no model. Every package may import this one. It imports no
other package, only the modules `errors`, `normal_form` and `text_caches`.
"""
