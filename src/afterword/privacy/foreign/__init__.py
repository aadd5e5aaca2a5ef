"""Recognising what a person's turn contains but the person did not say: pasted mails, documents, chats, code.

Everything here is pure. `stretches` is the entry; the other modules each recognise one family of forms.
"""
