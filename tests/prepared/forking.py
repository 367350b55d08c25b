"""The program of a Python that has imported what a server imports, and forks a process for each command it is sent.

Its text is given to the interpreter as that of `python -c` is, so that what it forks is as if started so: nothing of
the tests is imported there.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import struct
import sys
import time

import hms_cache.app.process
import hms_cache.cli.main
import hms_cache.cli.options
import hms_cache.cli.serve  # noqa: F401 - for what is forked


def fork_and_watch(status: int, *inherited: int) -> bool:
    """Whether this is the requested process. Another one waits for it, and writes its id and how it ended."""
    if os.fork():
        return False
    process_id = os.fork()
    if process_id == 0:
        return True
    for descriptor in inherited:
        os.close(descriptor)
    os.dup2(1, 2)  # no reader of the tests' pipes waits for this one
    with contextlib.suppress(BrokenPipeError):
        os.write(status, struct.pack("i", process_id))
    # It keeps its id until its end was reported: a signal to it does not reach another process.
    ended = os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    exit_code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    with contextlib.suppress(BrokenPipeError):  # nobody reads any more
        os.write(status, struct.pack("i", exit_code))
    os.waitpid(process_id, 0)
    os._exit(0)


def next_program(orders: socket.socket) -> str:
    """Returns, in a new process, what this has to run; ends when there are no more orders."""
    while True:
        size_text, descriptors, _, _ = socket.recv_fds(orders, 4, 3)
        if not size_text:
            os._exit(0)
        output, errors, status = descriptors
        order = json.loads(orders.recv(struct.unpack("i", size_text)[0], socket.MSG_WAITALL))
        if not fork_and_watch(status, output, errors, orders.fileno()):
            for descriptor in descriptors:
                os.close(descriptor)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            continue
        orders.close()
        signal.signal(signal.SIGINT, at_start)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        for descriptor in descriptors:
            os.close(descriptor)
        os.chdir(order["directory"])
        os.environ.clear()
        os.environ.update(order["environment"])
        time.tzset()
        os.sched_setaffinity(0, order["processors"])
        sys.argv = ["-c", *order["arguments"]]
        return str(order["program"])


# What is here stays: no process that is forked looks for cycles in it, or takes it apart at its end, which would copy
# all of its pages.
gc.collect()
gc.freeze()

# Ctrl-C is for the tests. What is forked takes it as one that is started here: not at all in a job of a shell.
at_start = signal.signal(signal.SIGINT, signal.SIG_IGN)
exec(next_program(socket.socket(fileno=int(sys.argv[1]))), {"__name__": "__main__"})
