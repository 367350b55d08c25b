"""A file system that never answers: a FUSE mount whose program reads requests and ignores them."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from pathlib import Path
from typing import Self

import pytest

_INIT = 26
"""FUSE's first request, which is answered: without that the kernel sends no other."""

_MNT_DETACH = 2


class SilentMount:
    """Covers a directory while it is open. `is_requested` is set when a process accesses the directory."""

    def __init__(self, directory: Path) -> None:
        self.is_requested = threading.Event()
        self._directory = str(directory).encode()
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self) -> Self:
        try:
            self._device = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            pytest.skip(f"no FUSE on this machine: {error}")
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if self._libc.mount(b"silent", self._directory, b"fuse", 0, options):
            error_text = os.strerror(ctypes.get_errno())
            os.close(self._device)
            pytest.skip(f"this account may not mount: {error_text}")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Processes that wait for it get an error, and the directory is visible again."""
        self._libc.umount2(self._directory, _MNT_DETACH | 1)
        self._thread.join(30)
        os.close(self._device)

    def _read(self) -> None:
        while True:
            try:
                request = os.read(self._device, 1 << 17)
            except OSError:
                return  # unmounted
            _, opcode, unique = struct.unpack_from("<IIQ", request)
            if opcode == _INIT:
                answer = struct.pack("<IIII", 7, 31, 0, 0) + struct.pack("<HHI", 12, 9, 4096) + bytes(40)
                os.write(self._device, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
            else:
                self.is_requested.set()
