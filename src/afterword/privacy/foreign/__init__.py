"""Recognise pasted text: mails, documents, chats and code in a person's turn that the person did not write. Pure.

The entry point is `stretches`. `messages` recognises chats, mails and letters. `documents` recognises records, tables,
logs, CVs, posts and scripts. `markup` recognises code, tags, quotations and delimiters. `writing_style` recognises
passages in another style.
"""
