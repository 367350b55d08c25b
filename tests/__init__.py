"""The tests. Python keeps compiled modules of the tests and of this program, even if the environment disables that, as
images of containers often do: otherwise each server that a test starts would compile them again, which takes a
second."""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
