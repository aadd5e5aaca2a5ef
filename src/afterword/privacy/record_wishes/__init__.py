"""Recognise requests not to store something, in other words than "off the record". Pure."""
