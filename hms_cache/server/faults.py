"""The one place where exceptions become Thrift answers.

A handler raises Hive's exception types. An exception that the method declares goes into its result struct. Another one
becomes a MetaException if the method declares that (as in Java's `newMetaException`), so that clients see a text.
Everything else becomes a TApplicationException, which Hive's Java client treats as retriable.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from sqlalchemy.exc import ArgumentError, IntegrityError
from thrift.Thrift import TApplicationException, TException

from hms_cache.config.secrets import redacted
from hms_cache.errors import HmsCacheError
from hms_cache.limited_log import LimitedLog
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.wire import MethodSpec, WireError

_limited_log = LimitedLog(logging.getLogger(__name__))

MAX_LOGGED_TRACES = 1024
"""Number of different errors that are logged with their traces. Further errors, and those logged before, are logged
without one."""

MAX_REPORTED_FIELDS = 40
"""Number of missing fields of a request that an error names."""

MAX_SEARCHED_VALUES = 1_000
"""Number of values of a request that are searched for them."""

MAX_LOGGED_TEXT = 500
"""Characters of an error's text in the log. The text may repeat what the client sent."""

MAX_MESSAGE_CHARACTERS = 16 * 1024
"""Characters of an error's text in an answer. The text may repeat megabytes of what the client sent, which would be
held in the server's memory and in the client's log. Names have at most 256 characters, and no text of the server itself
is as long as this."""

_MESSAGE_END = 1024
"""Characters that are kept from the end of the text, which often says what to do."""

_logged_traces: set[str] = set()
"""Errors that were logged with their traces. Threads add to it concurrently; at worst, a trace is logged twice."""


def unknown_method(name: str) -> TApplicationException:
    """Hive's text: Spark compares the text, Trino checks the type."""
    return TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{name}'")


def shortened(text: str) -> str:
    """An error's text for clients. If it is shortened, the text says how much is left out."""
    if len(text) <= MAX_MESSAGE_CHARACTERS:
        return text
    beginning, end = text[: MAX_MESSAGE_CHARACTERS - _MESSAGE_END], text[-_MESSAGE_END:]
    return f"{beginning}… ({len(text) - MAX_MESSAGE_CHARACTERS} characters left out) …{end}"


def declared_exception(method: MethodSpec, error: Exception) -> tuple[str, Exception] | None:
    """The result field and the exception to put into it; None if the method cannot carry this error."""
    for exception_class, field_name in method.exceptions.items():
        if isinstance(error, exception_class):
            text = getattr(error, "message", None)
            if isinstance(text, str) and len(text) > MAX_MESSAGE_CHARACTERS:
                setattr(error, "message", shortened(text))  # noqa: B010  a field of Thrift's
            return field_name, error
    if isinstance(error, TException) and not isinstance(error, TApplicationException):
        meta_field = method.exceptions.get(MetaException)
        if meta_field is not None:
            text = getattr(error, "message", None) or str(error)
            return meta_field, MetaException(shortened(f"{type(error).__name__}(message:{text})"))
    return None


def application_exception(method_name: str, error: Exception) -> TApplicationException:
    """The fault for an error that the result struct cannot carry. A defect is logged once with its trace."""
    if isinstance(error, TApplicationException):
        return TApplicationException(error.type, shortened(error.message or ""))
    if isinstance(error, HmsCacheError):
        return TApplicationException(
            TApplicationException.INTERNAL_ERROR, shortened(redacted(f"{method_name}: {error}"))
        )
    text = getattr(error, "message", None) or str(error)
    if isinstance(error, TException):
        return TApplicationException(TApplicationException.INTERNAL_ERROR, shortened(f"{method_name}: {text}"))
    shown = redacted(text)
    log_fault(f"internal error in {method_name}", shown, f"{method_name} {type(error).__name__}", error)
    # SQLAlchemy adds the statement and its values to errors of the database. These go to the log only.
    of_error, _, _ = shown.partition("\n[SQL: ")
    return TApplicationException(
        TApplicationException.INTERNAL_ERROR,
        shortened(f"Internal error processing {method_name}: {type(error).__name__}: {of_error}"),
    )


def log_fault(subject: str, text: str, kind: str, error: BaseException) -> None:
    """Logs a call that failed inside: the first time with its trace, later at most one line for each subject in ten
    seconds.

    `subject` and `kind` must be texts of the program itself, and few. A client may be able to repeat a failure, and
    thousands of lines a second would fill the disk that the database and the audit log use, too.
    """
    logged = first_of_its_kind(kind, error)
    _limited_log.error(f"{subject}: %r", text[:MAX_LOGGED_TEXT], exc_info=logged)


def first_of_its_kind(kind: str, error: BaseException) -> BaseException | None:
    """The error, to be logged with its trace, unless one of this kind was logged before: a client that repeats its
    mistake must not fill the log with traces."""
    if kind in _logged_traces or len(_logged_traces) >= MAX_LOGGED_TRACES:
        return None
    _logged_traces.add(kind)
    return error


def lacking(method: MethodSpec, arguments: Any, error: Exception) -> Exception:
    """The answer to an error that is caused by a missing value in the request; otherwise the error itself.

    Java fails on a missing argument with a null pointer, which becomes a MetaException, and on a missing field of a
    request with a protocol fault. The types here are the same; the text names the missing value.
    """
    if not _is_of_nothing(error):
        return error
    for name in arguments.__slots__:
        value = getattr(arguments, name)
        if value is None:
            missing: Exception = MetaException(f"{method.name} needs the argument {name}")
            return missing
    absent = list(islice(dict.fromkeys(_absent_fields(arguments)), MAX_REPORTED_FIELDS))
    if not absent:
        return error
    text = f"{method.name} needs a value that the request does not have; absent are: "
    names = ", ".join(absent)
    # With the trace: if the value should have been optional, this is a defect. Not once for each combination of missing
    # values, of which a client can make any number.
    message_text = "" if isinstance(error, IntegrityError) else str(error)
    logged = first_of_its_kind(f"{method.name} {type(error).__name__} {message_text}", error)
    _limited_log.warning(f"{text}%s", names, exc_info=logged)
    fault: Exception = TApplicationException(TApplicationException.PROTOCOL_ERROR, f"{text}{names}")
    return fault


def require(method: str, request: Any, *names: str) -> None:
    """Raises a protocol fault, as Hive's decoder does, if one of these fields has no value in the request. Used for
    fields that no client leaves out deliberately: nothing is logged."""
    absent = [f"{type(request).__name__}.{name}" for name in names if getattr(request, name) is None]
    if absent:
        text = f"{method} needs a value that the request does not have; absent are: {', '.join(absent)}"
        raise TApplicationException(TApplicationException.PROTOCOL_ERROR, text)


_NULL_REFUSED = re.compile(r"NOT NULL constraint failed|violates not-null constraint|cannot be null", re.ASCII)
"""The texts of SQLite, PostgreSQL, MySQL and MariaDB."""


def _is_of_nothing(error: Exception) -> bool:
    """Whether an error is caused by a value that is None: an error of Python, of SQLAlchemy for a comparison with it,
    or of a database that refuses to store it."""
    if isinstance(error, IntegrityError):
        return _NULL_REFUSED.search(str(error.orig)) is not None
    text = str(error)
    if isinstance(error, ArgumentError):
        return "None/True/False" in text
    return isinstance(error, AttributeError | TypeError) and "NoneType" in text


def _absent_fields(arguments: Any) -> Iterator[str]:
    """Fields without a value: of the structs in the arguments, of the structs in these, and so on."""
    found = [getattr(arguments, name) for name in arguments.__slots__]
    for value in found:  # grows during the loop
        inner: Iterable[Any] = ()
        if hasattr(value, "thrift_spec"):
            yield from (f"{type(value).__name__}.{name}" for name in value.__slots__ if getattr(value, name) is None)
            inner = [getattr(value, name) for name in value.__slots__]
        elif isinstance(value, dict):
            inner = value.values()
        elif isinstance(value, list | tuple | set):
            inner = value
        found += islice(inner, max(0, MAX_SEARCHED_VALUES - len(found)))


def wire_fault(error: WireError) -> TApplicationException:
    """The fault for bytes that are not a valid message."""
    return TApplicationException(TApplicationException.PROTOCOL_ERROR, shortened(str(error)))


def busy(text: str) -> TApplicationException:
    """The fault for a call for which the server has no room or no time. Hive's Java client retries it."""
    return TApplicationException(TApplicationException.INTERNAL_ERROR, text)


def forget_frames(error: BaseException | None) -> None:
    """Removes the tracebacks from an error that has been reported, and from its causes.

    A frame with a variable that holds its own error is a reference cycle, which keeps all arguments of the call until
    the garbage collector runs. That is rare: it would be megabytes for a hostile client, and for each read of a missing
    table.
    """
    while error is not None:
        error.__traceback__ = None
        following = error.__cause__ or error.__context__
        error.__cause__ = error.__context__ = None
        error = following
