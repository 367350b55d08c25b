"""What is held, kept in a file over a restart: with its position, and what proves that the log still has it."""
