"""The process: builds every part once, in order, and takes it down in the opposite order.

The only package that knows all the others, and with ``server`` the only one that starts threads.
"""
