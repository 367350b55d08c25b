"""The command line. Modules of this package import only click at the top, so that ``--help`` and ``version`` respond
immediately."""
