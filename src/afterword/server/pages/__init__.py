"""Web pages for people: what is remembered, where it comes from, what waits for a decision, and how to forget it.

Every change also works without JavaScript. The service imports only the module `mount`.
"""
