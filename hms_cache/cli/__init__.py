"""The command line. Modules here import only click at the top, so that ``--help`` and ``version`` answer at once."""
