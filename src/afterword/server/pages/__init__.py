"""Web pages for people: what is remembered, where it comes from, what waits for a decision, and how to forget it.

Every page works without JavaScript where it changes something. Only `mount` is imported by the service.
"""
