"""Reading what agents found in a session, after its facts.

Imported by `pipeline.session`. It asks a model with a prompt of its own, only for scopes that keep findings.
"""
