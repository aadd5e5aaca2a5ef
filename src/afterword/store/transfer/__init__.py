"""Export and import of a store or a part of it, for another store or for people.

The client and the command line import it.
"""
