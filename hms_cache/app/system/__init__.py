"""What the operating system and the C library let the process have: open files, memory."""
