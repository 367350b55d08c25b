"""Patterns that clients send, each kind in one module, matched in time linear in the text.

Python's `re` backtracks: a pattern of a few characters can take years, and holds the interpreter's lock meanwhile. So
`re` compiles no pattern that comes from outside.
"""
