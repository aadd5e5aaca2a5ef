"""Exports a store or some of its scopes, for another store or for people to read, and imports such exports."""
