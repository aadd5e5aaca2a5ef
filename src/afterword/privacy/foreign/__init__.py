"""Recognise pasted text: mails, documents, chats and code in a person's turn that the person did not write. Pure.

The entry point is `stretches`. `messages` recognises chats, mails and letters; `documents`
records, tables, logs, CVs, posts and scripts; `markup` code, tags, quotations and delimiters; `register` passages in another style.
"""
