"""What must not be stored or served: secrets, turns off the record, injected instructions, forgotten words.

Everything here is pure. It imports only `afterword.facts`. Every other package except `facts` may import it.
"""
