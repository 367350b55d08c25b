"""Decodes a long message while it arrives.

Thrift's C decoder reads its bytes synchronously, and an unframed message does not contain its length. Decoding from the
start after each arrival would take quadratic time, and waiting until the amount has doubled would wait forever for a
message that is nearly complete. So the decoder runs in a greenlet: when it needs bytes that have not arrived, the
greenlet is suspended until they have. Each byte is decoded once.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from contextlib import suppress
from io import BytesIO
from statistics import mode
from time import perf_counter, thread_time
from typing import Any, ClassVar, Final

from greenlet import GreenletExit, getcurrent, greenlet
from thrift.Thrift import TType

from hms_cache.wire.codec import DecoderState, undecodable
from hms_cache.wire.encodings import BINARY, Encoding
from hms_cache.wire.errors import MalformedMessage, MessageTooLarge, WireError

#: Initial size of the pieces for the decoder. Objects and time are checked after each piece; after a slow piece (a
#: struct of one byte takes more than a microsecond) the next one is smaller.
_FIRST_PIECE_BYTES: Final = 256
_LEAST_PIECE_BYTES: Final = 128
_MAX_PIECE_BYTES: Final = 64 * 1024
_LONG_PIECE_S: Final = 0.0001
_SHORT_PIECE_S: Final = 0.00003
#: Shorter pieces are joined.
_SHORT_BYTES: Final = 2048
#: Objects that any message may create before the ratio below applies. Objects that other threads allocate meanwhile are
#: counted as well: this is their margin.
_FREE_OBJECTS: Final = 1_000_000
#: Beyond those, one object per this many bytes. Ordinary requests create one per 12 bytes (lists of short names) to 20
#: bytes (partitions); a message of empty structs creates one per byte, with 136 bytes each.
_BYTES_PER_OBJECT: Final = 2
#: To count objects, the interpreter walks through all its memory: 70 microseconds with 200,000 other objects, 600 with
#: two million. This is not done for the first bytes of a message: empty structs in 8 KiB take a megabyte, no more than
#: `_MAX_EMPTY_OBJECTS` in a row.
_UNCOUNTED_BYTES: Final = 8 * 1024
#: A count takes milliseconds if there are gigabytes, and was most of the cost of a request with statistics of many
#: partitions. So bytes that cannot have created many objects are not counted: those that are decoded in less time than
#: one object per this many bytes would take (`MessageStream.object_s`).
_ORDINARY_BYTES_PER_OBJECT: Final = 4
#: Other bytes are counted after decoding them has taken this many times as long as a count.
_TIMES_A_COUNT: Final = 4
#: Or after this time: some 100,000 objects at most, which are freed in 8 ms.
_MAX_UNCOUNTED_S: Final = 0.01
#: After the first bytes, objects are counted after every this many bytes, whether or not the decoder is running.
_COUNTED_BYTES: Final = 16 * 1024
#: A message that arrives in small portions stops the decoder after each, and objects that others allocate meanwhile are
#: not its own: counting at both ends of each portion would cost a hundred times as much as decoding it. So small
#: portions are sampled: this many consecutive bytes represent all bytes since the previous sample. A sample begins at
#: random within `_SAMPLED_FROM_BYTES`, so that no client can place objects between samples.
_SAMPLE_BYTES: Final = 128
_SAMPLED_FROM_BYTES: Final = 8 * 1024
#: A byte creates at most one object; a list of them grows occasionally.
_MAX_BLOCKS_PER_BYTE: Final = 2
#: Bytes that were not counted are assumed to create as many objects as ordinary requests.
_USUAL_BYTES_PER_OBJECT: Final = 12
#: Maximum number of consecutive objects with at most 1.5 bytes each: structs without fields, which no real client
#: sends. Freeing half a million of them would block the loop for 40 ms. A piece during which other threads allocate
#: does not interrupt such a sequence of a real client.
_MAX_EMPTY_OBJECTS: Final = 10_000

_RANDOM: Final = random.Random()


class MessageStream:
    """Decodes the arguments of one message from pieces.

    bytes_limit: maximum number of bytes of the arguments; for a framed message, their number.
    framed: whether exceeding that limit means a malformed message rather than one that is too large.
    max_objects: maximum number of objects that the message may create.
    slice_s: time after which `resume` returns although more can be decoded (`is_ready`); None: unlimited.

    For one thread; not reentrant.
    """

    object_s: ClassVar[float] = 1e-7
    """Minimum time in which the decoder creates an object; measured when this module is loaded."""

    def __init__(
        self,
        encoding: Encoding,
        typeargs: list[Any],
        bytes_limit: int,
        max_objects: int,
        slice_s: float | None = None,
    ) -> None:
        self.received_bytes = 0
        self._encoding = encoding
        self._typeargs = typeargs
        self.bytes_limit = bytes_limit
        self._max_objects = max_objects
        self._pieces: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._read_bytes = 0
        self._buffer = BytesIO()
        self._blocks_at_entry = 0
        self._blocks = 0
        self._counts = False
        self._counted_bytes = 0
        self._needed_bytes = 0
        self._is_counting = False
        """Whether the current portion is counted."""

        self._is_count_due = False
        """Whether counting is to begin when the decoder has its bytes."""

        self._released: BytesIO | None = None

        self._sample_at = 0
        """The next sample is counted from this byte of the message on."""

        self._sample_bytes = self._sample_blocks = self._sample_began_bytes = 0
        self._sample_s = 0.0
        self._empty_objects = 0
        self._piece_bytes = _FIRST_PIECE_BYTES
        self._piece_began_s = 0.0
        self._received_at_once_bytes = 0
        self._is_slow = False
        """Whether the bytes since the last count took longer than ordinary requests: then they will be counted."""

        self._uncounted_s = 0.0
        self._counting_s = 0.0
        """Time of the last sample, without decoding."""

        self.slice_s = slice_s
        self._slice_end_s = 0.0
        self.is_ready = False
        """Whether `resume` returned because of its time limit, and not for lack of bytes."""
        self._failure: WireError | None = None  # the C decoder may replace an exception that is raised through it
        self._decoder: greenlet | None = greenlet(self._decode)

    def push(self, data: bytes | memoryview) -> None:
        """Appends received bytes. They are kept; only short pieces are copied together."""
        if data:
            pieces = self._pieces
            # A piece costs some 200 bytes in addition to its own, so there must not be a million pieces of one byte.
            if pieces and len(data) < _SHORT_BYTES and len(pieces[-1]) < _SHORT_BYTES:
                pieces[-1] = memoryview(b"".join((pieces[-1], data)))
            else:
                pieces.append(memoryview(data))
            self._waiting_bytes += len(data)
            self.received_bytes += len(data)

    def resume(self) -> Any | None:
        """Decodes the available bytes; returns the arguments struct, or None if more are needed. Raises WireError."""
        decoder = self._decoder
        if decoder is None:
            raise RuntimeError("this stream has ended")
        if self._waiting_bytes < self._needed_bytes:
            return None
        decoder.parent = getcurrent()
        self._begin_count()
        self.is_ready = False
        if self.slice_s is not None:
            self._slice_end_s = perf_counter() + self.slice_s
        try:
            arguments = decoder.switch()
        except MemoryError as error:
            self._decoder = None
            raise MessageTooLarge("the message does not fit in memory") from error
        except Exception as error:
            self._decoder = None
            if self._failure is not None:
                raise self._failure from None
            raise undecodable(error) from error
        if decoder.dead:
            self._decoder = None
            if self._is_counting and not self._is_count_due:
                self._blocks += max(0, sys.getallocatedblocks() - self._blocks_at_entry)
            return arguments
        return None

    def rest(self) -> bytes:
        """The bytes after the arguments, once `resume` has returned these."""
        return self._buffer.read() + b"".join(self._pieces)

    @property
    def decoded_bytes(self) -> int:
        """The size of the arguments, once `resume` has returned them."""
        return self._read_bytes - (len(self._buffer.getvalue()) - self._buffer.tell())

    @property
    def decoded_objects(self) -> int:
        """Approximate number of objects created so far."""
        first_bytes = min(self._read_bytes, _UNCOUNTED_BYTES)
        # Bytes since the last sample are not counted yet.
        unknown_bytes = self._read_bytes - self._counted_bytes if self._counts else 0
        if self._is_slow:  # upper bound
            unknown = min(unknown_bytes // _BYTES_PER_OBJECT, int(self._uncounted_s / self.object_s))
        else:
            unknown = unknown_bytes // _USUAL_BYTES_PER_OBJECT
        return self._blocks + first_bytes // _USUAL_BYTES_PER_OBJECT + unknown

    def close(self) -> None:
        """Ends the decoder and frees what it has created."""
        decoder, self._decoder = self._decoder, None
        if decoder is not None and not decoder.dead:
            decoder.parent = getcurrent()
            with suppress(Exception):
                decoder.throw(GreenletExit)

    def _decode(self) -> Any:
        self._buffer = self._take(b"", 1)
        transport = _Transport(self, self._buffer)
        arguments = self._typeargs[0]()
        self._encoding.decode(arguments, DecoderState(transport, self.bytes_limit), self._typeargs)
        return arguments

    def refill(self, partial: bytes, needed: int) -> BytesIO:
        """A buffer that begins with `partial` and has at least `needed` bytes; waits in the parent greenlet for
        them."""
        duration_s = thread_time() - self._piece_began_s
        self._uncounted_s += duration_s
        if duration_s * _ORDINARY_BYTES_PER_OBJECT > self.object_s * self._received_at_once_bytes:
            self._is_slow = True
        stops = self._waiting_bytes < needed - len(partial)
        if stops or not self._counts or self._read_bytes - self._counted_bytes >= _COUNTED_BYTES:
            # If `partial` is longer than a byte, the decoder has created it.
            self._count_objects(made_besides=len(partial) > 1)
        if duration_s > _LONG_PIECE_S:
            self._piece_bytes = max(self._piece_bytes // 2, _LEAST_PIECE_BYTES)
        elif duration_s < _SHORT_PIECE_S:
            self._piece_bytes = min(self._piece_bytes * 2, _MAX_PIECE_BYTES)
        ends_slice = self.slice_s is not None and perf_counter() > self._slice_end_s
        if ends_slice:
            self._count_objects()
            self.is_ready = True
            getcurrent().parent.switch()
            self._begin_count()
        before = self._buffer
        self._buffer = self._take(partial, needed)
        if self._is_counting and self._is_count_due:
            # In a portion of a few bytes each block matters: the decoder frees its buffer after this.
            self._released = before
            self._is_count_due = False
            self._blocks_at_entry = self._allocated()
        return self._buffer

    def _allocated(self) -> int:
        """Number of allocated blocks of the process."""
        began_s = thread_time()
        blocks = sys.getallocatedblocks()
        self._sample_s += thread_time() - began_s
        return blocks

    def _take(self, partial: bytes, needed: int) -> BytesIO:
        missing = needed - len(partial)
        if self._read_bytes + missing > self.bytes_limit:
            raise self._fail(self._overrun())
        while self._waiting_bytes < missing:
            self._needed_bytes = missing
            getcurrent().parent.switch()
            self._needed_bytes = 0
            self._begin_count()
        piece_bytes = self._piece_bytes
        if not self._counts:  # the piece that reaches the length from which objects are counted ends there
            piece_bytes = min(piece_bytes, _UNCOUNTED_BYTES + 1 - self._read_bytes)
        count = min(max(missing, piece_bytes), self._waiting_bytes, self.bytes_limit - self._read_bytes)
        taken: list[bytes | memoryview] = [partial] if partial else []
        while count > 0:
            piece = self._pieces.popleft()
            if len(piece) > count:
                self._pieces.appendleft(piece[count:])
                piece = piece[:count]
            taken.append(piece)
            count -= len(piece)
            self._read_bytes += len(piece)
            self._waiting_bytes -= len(piece)
        data = b"".join(taken)
        self._received_at_once_bytes = len(data)
        self._piece_began_s = thread_time()
        return BytesIO(data)

    def _overrun(self) -> WireError:
        if self._encoding.framed:
            return MalformedMessage("the message does not end within its frame")
        return MessageTooLarge(f"the message is larger than {self.bytes_limit} bytes")

    def _begin_count(self) -> None:
        """Objects that others have created meanwhile do not count for the message."""
        self._is_counting = (
            self._counts
            and self._is_slow
            and self._read_bytes + self._waiting_bytes > self._sample_at
            and self._uncounted_s >= min(_MAX_UNCOUNTED_S, _TIMES_A_COUNT * self._counting_s)
        )
        self._is_count_due = self._is_counting
        self._sample_began_bytes = self._read_bytes

    def _count_objects(self, made_besides: int = 0) -> None:
        """Limits the objects that the message creates: 100 MiB of empty structs would take 14 GB."""
        if not self._counts:
            if self._read_bytes > _UNCOUNTED_BYTES:
                self._counts, self._counted_bytes = True, self._read_bytes
                self._begin_count()
            return
        if not self._is_slow:
            self._blocks += (self._read_bytes - self._counted_bytes) // _USUAL_BYTES_PER_OBJECT
            self._counted_bytes, self._uncounted_s = self._read_bytes, 0.0
            return
        if not self._is_counting:
            self._begin_count()
            return
        if self._is_count_due or self._read_bytes == self._sample_began_bytes:
            return
        now = self._allocated()
        self._sample_blocks += max(0, now - self._blocks_at_entry - made_besides + _BLOCKS_LET_GO)
        self._sample_bytes += self._read_bytes - self._sample_began_bytes
        self._blocks_at_entry, self._sample_began_bytes = now, self._read_bytes
        size_bytes = self._read_bytes - self._counted_bytes
        if self._sample_bytes < min(_SAMPLE_BYTES, size_bytes):
            return
        sample_blocks, sample_bytes = self._sample_blocks, self._sample_bytes
        self._sample_blocks = self._sample_bytes = 0
        self._counting_s, self._sample_s = self._sample_s, 0.0
        if size_bytes > sample_bytes and sample_blocks > _MAX_BLOCKS_PER_BYTE * sample_bytes:
            return  # created by other threads: they must not be extrapolated; the next portion is another sample
        made = sample_blocks * size_bytes // sample_bytes
        self._blocks += made
        self._counted_bytes, self._uncounted_s = self._read_bytes, 0.0
        self._is_slow = self._is_counting = False
        self._sample_at = self._read_bytes + _RANDOM.randrange(_SAMPLED_FROM_BYTES)
        self._empty_objects = self._empty_objects + made if 3 * made > 2 * size_bytes else 0
        if self._empty_objects > _MAX_EMPTY_OBJECTS:
            text = f"the message makes {self._empty_objects} objects without content in a row"
            raise self._fail(MessageTooLarge(text))
        if self._blocks > min(self._max_objects, _FREE_OBJECTS + self._read_bytes // _BYTES_PER_OBJECT):
            text = f"the message makes {self._blocks} objects of its first {self._read_bytes} bytes"
            raise self._fail(MessageTooLarge(text))

    def _fail(self, failure: WireError) -> WireError:
        self._failure = failure
        return failure


class _Transport:
    """The transport of the C decoder; see `codec.FixedBuffer`."""

    __slots__ = ("_stream", "cstringio_buf")

    def __init__(self, stream: MessageStream, buffer: BytesIO) -> None:
        self._stream = stream
        self.cstringio_buf = buffer

    def cstringio_refill(self, partial: bytes, needed: int) -> BytesIO:
        return self._stream.refill(partial, needed)


class _EmptyStruct:
    """A struct without fields, one block of memory."""

    __slots__ = ()
    thrift_spec = ()


class _EmptyStructs:
    """A struct with a list of them."""

    thrift_spec = (None, (1, TType.LIST, "all", (TType.STRUCT, [_EmptyStruct, _EmptyStruct.thrift_spec], False), None))


class _OneAtATime(MessageStream):
    """Records how many blocks each portion with one empty struct takes, as counted."""

    def __init__(self, portions: int) -> None:
        super().__init__(BINARY, [_EmptyStructs, _EmptyStructs.thrift_spec], 1 << 20, 1 << 20)
        self._counts = self._is_slow = True
        self.blocks = [0] * portions
        self.counted = 0

    def _count_objects(self, made_besides: int = 0) -> None:
        if self._is_counting and not self._is_count_due and self._read_bytes > self._sample_began_bytes:
            self.blocks[self.counted] = sys.getallocatedblocks() - self._blocks_at_entry - made_besides
            self.counted += 1


def _blocks_let_go() -> int:
    """Number of blocks that existed when a portion's count began, and are freed when the decoder has handled the
    portion.

    None in Python 3.11 and two in 3.13, which would hide as many objects of each portion. Interpreters differ in this,
    so it is measured.
    """
    portions = 32
    stream = _OneAtATime(portions)
    stream.push(bytes([TType.LIST, 0, 1, TType.STRUCT]) + (2 * portions).to_bytes(4, "big"))
    for _ in range(portions):
        stream.push(b"\0")
        stream.resume()
    stream.close()
    # the most frequent value, since other threads allocate and free objects as well
    return 1 - mode(stream.blocks[1 : stream.counted])


_BLOCKS_LET_GO: Final = _blocks_let_go()


def _object_s() -> float:
    """Minimum time in which the decoder creates an object on this machine: a struct without fields."""
    many = 200
    least_s = _MAX_UNCOUNTED_S
    for _ in range(5):  # the first time the processor's caches are empty
        stream = MessageStream(BINARY, [_EmptyStructs, _EmptyStructs.thrift_spec], 1 << 20, 1 << 20)
        stream.push(bytes([TType.LIST, 0, 1, TType.STRUCT]) + many.to_bytes(4, "big"))
        stream.resume()
        stream._piece_bytes = many
        stream.push(bytes(many))
        began_s = thread_time()
        stream.resume()
        least_s = min(least_s, thread_time() - began_s)
        stream.close()
    return max(least_s / many, _LEAST_OBJECT_S)


_LEAST_OBJECT_S: Final = 20e-9
"""Lower bound, if the resolution of the thread's clock is low."""

MessageStream.object_s = _object_s()
