"""Recognise what must not be stored or shown to an agent, and take it out of texts.

This covers secrets, off-the-record turns, injected instructions and forgotten words. The functions are pure: they use
no database, network or clock. Of the rest of afterword they import only `facts`, `normal_form` and `text_caches`.
"""
