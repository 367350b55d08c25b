"""The one place where exceptions become Thrift answers.

A handler raises Hive's exception types. One that the method declares goes into its result struct; one that it does
not declare becomes a MetaException when the method has that (Java's `newMetaException` does the same), so that
clients see a text; everything else is a TApplicationException, which Hive's Java client takes as retriable.
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
"""Different errors whose trace is logged; beyond them, as for one that was logged before, only its text is."""

MAX_TOLD_FIELDS = 40
"""Fields of a request without a value that an error names."""

MAX_SEARCHED_VALUES = 1_000
"""Values of a request that are searched for them."""

MAX_LOGGED_TEXT = 500
"""Characters of an error's text in the log: it may repeat what the client sent."""

MAX_TOLD_CHARACTERS = 16 * 1024
"""Of an error's text in an answer: it may repeat what the client sent, megabytes of it, in the server's memory and in
the client's log. Names end at 256 characters, and no text of the server's own is as long."""

_TOLD_END = 1024
"""Of these at the text's end, where many say what to do."""

_logged_traces: set[str] = set()
"""What was logged with its trace. Threads add to it at the same time: the worst is a trace logged twice."""


def unknown_method(name: str) -> TApplicationException:
    """Hive's text: Spark compares it letter by letter, Trino looks at the type."""
    return TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{name}'")


def told(text: str) -> str:
    """An error's text as clients get it: what is left out of a long one is counted."""
    if len(text) <= MAX_TOLD_CHARACTERS:
        return text
    beginning, end = text[: MAX_TOLD_CHARACTERS - _TOLD_END], text[-_TOLD_END:]
    return f"{beginning}… ({len(text) - MAX_TOLD_CHARACTERS} characters left out) …{end}"


def declared_exception(method: MethodSpec, error: Exception) -> tuple[str, Exception] | None:
    """The result field and the exception to put into it, or None when the method cannot carry this error."""
    for exception_class, field_name in method.exceptions.items():
        if isinstance(error, exception_class):
            text = getattr(error, "message", None)
            if isinstance(text, str) and len(text) > MAX_TOLD_CHARACTERS:
                setattr(error, "message", told(text))  # noqa: B010  a field of Thrift's
            return field_name, error
    if isinstance(error, TException) and not isinstance(error, TApplicationException):
        meta_field = method.exceptions.get(MetaException)
        if meta_field is not None:
            text = getattr(error, "message", None) or str(error)
            return meta_field, MetaException(told(f"{type(error).__name__}(message:{text})"))
    return None


def application_exception(method_name: str, error: Exception) -> TApplicationException:
    """The fault for an error that the result struct cannot carry; a defect is logged with its trace, once."""
    if isinstance(error, TApplicationException):
        return TApplicationException(error.type, told(error.message or ""))
    if isinstance(error, HmsCacheError):
        return TApplicationException(TApplicationException.INTERNAL_ERROR, told(redacted(f"{method_name}: {error}")))
    text = getattr(error, "message", None) or str(error)
    if isinstance(error, TException):
        return TApplicationException(TApplicationException.INTERNAL_ERROR, told(f"{method_name}: {text}"))
    shown = redacted(text)
    log_fault(f"internal error in {method_name}", shown, f"{method_name} {type(error).__name__}", error)
    # Of a database's errors without the statement and its values, which SQLAlchemy adds: they are for the log.
    of_error, _, _ = shown.partition("\n[SQL: ")
    return TApplicationException(
        TApplicationException.INTERNAL_ERROR,
        told(f"Internal error processing {method_name}: {type(error).__name__}: {of_error}"),
    )


def log_fault(subject: str, text: str, kind: str, error: BaseException) -> None:
    """A line about a call that failed inside: with its trace the first time, later one of each subject in ten seconds.

    `subject` and `kind`: of the program's own words, and few. A client may know how to repeat what fails, and
    thousands of lines a second would fill the disk that the database and the audit log are on, too.
    """
    logged = first_of_its_kind(kind, error)
    _limited_log.error(f"{subject}: %r", text[:MAX_LOGGED_TEXT], exc_info=logged)


def first_of_its_kind(kind: str, error: BaseException) -> BaseException | None:
    """The error, to be logged with its trace, if none of this kind was: a client that repeats its mistake must not fill
    the log with traces."""
    if kind in _logged_traces or len(_logged_traces) >= MAX_LOGGED_TRACES:
        return None
    _logged_traces.add(kind)
    return error


def lacking(method: MethodSpec, arguments: Any, error: Exception) -> Exception:
    """What to answer for an error that comes of a value that the request does not have; else the error itself.

    Java fails on an absent argument with a null pointer, which becomes a MetaException, and on an absent field of a
    request with a fault of the protocol. The types are the same here; the text names what is absent.
    """
    if not _is_of_nothing(error):
        return error
    for name in arguments.__slots__:
        value = getattr(arguments, name)
        if value is None:
            missing: Exception = MetaException(f"{method.name} needs the argument {name}")
            return missing
    absent = list(islice(dict.fromkeys(_absent_fields(arguments)), MAX_TOLD_FIELDS))
    if not absent:
        return error
    text = f"{method.name} needs a value that the request does not have; absent are: "
    names = ", ".join(absent)
    # With the trace: should the value have been optional, this is a defect. Not once for each combination of what is
    # absent: those are as many as a client likes.
    told = "" if isinstance(error, IntegrityError) else str(error)
    logged = first_of_its_kind(f"{method.name} {type(error).__name__} {told}", error)
    _limited_log.warning(f"{text}%s", names, exc_info=logged)
    fault: Exception = TApplicationException(TApplicationException.PROTOCOL_ERROR, f"{text}{names}")
    return fault


def require(method: str, request: Any, *names: str) -> None:
    """Raises a fault of the protocol, as Hive's decoder does, if one of these fields has no value in the request. For
    fields that cannot have been meant to be left out: nothing is logged."""
    absent = [f"{type(request).__name__}.{name}" for name in names if getattr(request, name) is None]
    if absent:
        text = f"{method} needs a value that the request does not have; absent are: {', '.join(absent)}"
        raise TApplicationException(TApplicationException.PROTOCOL_ERROR, text)


_NULL_REFUSED = re.compile(r"NOT NULL constraint failed|violates not-null constraint|cannot be null", re.ASCII)
"""In the words of SQLite, PostgreSQL, MySQL and MariaDB."""


def _is_of_nothing(error: Exception) -> bool:
    """Whether an error is that of a value that is None: Python's, SQLAlchemy's of a comparison with it, or a database's
    that does not store it."""
    if isinstance(error, IntegrityError):
        return _NULL_REFUSED.search(str(error.orig)) is not None
    text = str(error)
    if isinstance(error, ArgumentError):
        return "None/True/False" in text
    return isinstance(error, AttributeError | TypeError) and "NoneType" in text


def _absent_fields(arguments: Any) -> Iterator[str]:
    """Fields without a value, of the structs in the arguments, of those in these, and so on."""
    found = [getattr(arguments, name) for name in arguments.__slots__]
    for value in found:  # grows on the way
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
    """The fault for bytes that are no message of ours."""
    return TApplicationException(TApplicationException.PROTOCOL_ERROR, told(str(error)))


def busy(text: str) -> TApplicationException:
    """The fault for a call that the server has no room or no time for; Hive's Java client tries it again."""
    return TApplicationException(TApplicationException.INTERNAL_ERROR, text)


def forget_frames(error: BaseException | None) -> None:
    """Take the frames from an error that has been told, and from what it came from.

    A frame that has its error in a variable makes a cycle with it, and the cycle holds all arguments of the call until
    the collector of cycles comes by, which is rare: megabytes for a hostile client, and for every table that is not
    there.
    """
    while error is not None:
        error.__traceback__ = None
        following = error.__cause__ or error.__context__
        error.__cause__ = error.__context__ = None
        error = following
