"""What must not be stored or served: secrets, turns off the record, injected instructions, forgotten words.

Everything here is pure. It imports no other package than `afterword.facts`, and every package above may import it.
"""
