"""The tests. Python keeps what it compiles of them and of us, whatever the environment says (images of containers often
have it keep nothing): each server that a test starts would compile it all anew, for a second."""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
