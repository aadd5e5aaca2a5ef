"""Access from outside, in the Python interface: keys, requests of keys, and webhooks.

Imported by `client`, the service and the command line.
"""
