"""What must not be kept or served: secrets, words off the record, injected instructions, forgotten words. Pure."""
