"""The job ``verify``: what servers answer, compared with the database."""
