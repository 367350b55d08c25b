"""The process: creates every part once, in order, and shuts the parts down in reverse order.

The only package that imports all others, and with ``server`` the only one that starts threads.
"""
