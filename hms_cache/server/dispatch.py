"""From a decoded message to an encoded reply."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from thrift.Thrift import TApplicationException

from hms_cache.authorization.decisions import Decisions
from hms_cache.cache.budget import ALWAYS_KEPT_ANSWER_BYTES
from hms_cache.cache.reads.reading import Reading
from hms_cache.call_context import call_context
from hms_cache.metrics.loads import CallLoads
from hms_cache.metrics.operations import Operations
from hms_cache.server.audit import Audited, AuditLog
from hms_cache.server.authorization.guard import AccessDenied, Guard
from hms_cache.server.authorization.objects import named_objects
from hms_cache.server.calls import Call, Handler, HandlerFunction, Kind, changes_catalog, default_audit
from hms_cache.server.encoded_answers import encode_in_pieces, join_reply
from hms_cache.server.faults import (
    application_exception,
    declared_exception,
    forget_frames,
    lacking,
    log_fault,
    unknown_method,
)
from hms_cache.server.hot_path import METHODS as HOT_METHODS
from hms_cache.server.loads.large_replies import LargeReplies
from hms_cache.server.loads.requested_tables import requested_table
from hms_cache.server.request_sizes import check_request_size
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.combined_calls import CombinedCalls
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.wire import (
    Message,
    MethodSpec,
    encode_exception,
    encode_payload,
    encode_payload_parts,
    encode_reply_from_payload,
    reply_template,
)
from hms_cache.wire.long_structs import LongReplies
from hms_cache.wire.versions import exception_attribute

_log = logging.getLogger(__name__)

_LONGEST_FAILURE = 1000
"""Characters of an error's text in the log of slow calls and on the page of operations. The text may come from the
client."""

MAX_SUMMED_PIECES = 20_000
"""More pieces than those of 2,500 partitions, a large answer. Adding up their sizes would cost a tenth of joining
them."""

LARGE_REPLY_BYTES = 64 * 1024
"""Kept replies larger than this are written in two pieces, header and payload, which is cheaper than to copy them."""

CallObserver = Callable[[str, str, float], None]
"""(method, outcome, seconds); outcome: `ok`, `fault` (declared by the method), `error`, `denied`, `unknown_method`."""


_NAMES_IN_OBJECTS = (("dbName", "tableName"), ("table_db", "table_name"), ("fktable_db", "fktable_name"))
"""The fields that hold database and table in the objects that requests carry in lists."""


class Dispatcher:
    """Finds the handler of a message, runs it, and translates its exceptions. Thread-safe: it only reads its tables."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        stores: Stores,
        audit: AuditLog,
        *,
        slow_call_s: float = 1.0,
        observe: CallObserver | None = None,
        keep: Reading | None = None,
        operations: Operations | None = None,
        guard: Guard | None = None,
        loads: CallLoads | None = None,
        large_reply_bytes: int = 0,
    ) -> None:
        """`keep`: where encoded replies are kept for the hot path; None: they are not kept. `operations` records
        changes.

        `guard`: authorizes calls; without one, everybody may do everything. `loads`: counts by user, address and table.
        `large_reply_bytes`: replies of this size or more are noted (`expects_large_reply`); 0: none are.
        """
        self._loads = loads
        self._guard = guard
        self._handlers = handlers
        self._stores = stores
        self._audit = audit
        self.slow_call_s = slow_call_s
        self._observe = observe
        self._keep = keep
        self._operations = operations
        self._long_replies = LongReplies()
        self._large_replies = LargeReplies(large_reply_bytes)

    def runs_on_loop(self, message: Message) -> bool:
        """Whether the call needs no thread: it is answered from memory, or the method does not exist."""
        handler = self._handlers.get(message.name)
        if handler is None or message.args is None:
            return True
        return handler.kind is Kind.LOCAL and not (self._guard is not None and self._guard.may_wait(message.name))

    def is_for_its_client_alone(self, message: Message) -> bool:
        """Whether the call has no effect other than its answer."""
        handler = self._handlers.get(message.name)
        return handler is not None and handler.kind is Kind.READ and message.expects_reply

    def expects_large_reply(self, message: Message) -> bool:
        """Whether similar calls have had large replies recently."""
        known = self._large_replies
        return bool(known) and known.expects(message.name, requested_table(message.args), message.memory_bytes)

    def _record_size(self, message: Message, size_bytes: int) -> None:
        if self._large_replies.is_of_interest(size_bytes):
            self._large_replies.note(message.name, requested_table(message.args), message.memory_bytes, size_bytes)

    def execute(self, session: Session, message: Message) -> bytes | None:
        """Runs the call and returns the bytes of the reply, None for a one-way call. Never raises."""
        started = time.perf_counter()
        handler = self._handlers.get(message.name)
        if handler is None or message.args is None:
            self._note(message.name if handler else "unknown", "unknown_method", started)
            return encode_exception(message, unknown_method(message.name)) if message.expects_reply else None
        keeps = self._keep is not None and message.name in HOT_METHODS and not session.variables
        is_write = handler.kind is Kind.WRITE
        # Before the call, since handlers complete the structs of the request.
        records_objects = self._audit.records_objects and self._audit.wants(is_write=is_write)
        objects = named_objects(message.args) if records_objects else ()
        call_context.begin(session.identifier, session.user, session.peer, fills_cache=session.fills_cache)
        try:
            if is_write and self._operations is not None and changes_catalog(message.name):
                outcome, reply = self._run_registered(self._operations, handler, session, message)
            else:
                outcome, reply = self._run(handler, session, message, keeps)
            self._account(handler, session, message, outcome, objects, started)
        finally:
            call_context.end()
        return reply

    def _account(
        self,
        handler: Handler,
        session: Session,
        message: Message,
        outcome: str,
        objects: tuple[str, ...],
        started: float,
    ) -> None:
        """Reports a call that has ended to the audit log, the counters and the log of slow calls."""
        if self._audit.wants(is_write=handler.kind is Kind.WRITE or outcome == "denied"):
            if outcome == "denied" and self._audit.records_objects and not objects:
                objects = named_objects(message.args)
            self._record(session, _audit_text(handler, message), message.name, outcome, objects)
        seconds = self._note(message.name, outcome, started)
        if self._loads is not None:
            table = requested_table(message.args)
            self._loads.add(call_context.user, call_context.address, table, seconds, call_context.loads)

    def combination(self, message: Message) -> CombinedCalls | None:
        """The combination of calls with which this one may be carried out (`execute_together`); None: it runs alone."""
        combined = self._stores.transactions.combined.get(message.name)
        if combined is None or message.args is None:
            return None
        argument = self._handlers[message.name].request
        request = _argument_of(argument, message.args) if argument is not None else None
        return combined if request is not None and combined.admits(request) else None

    def execute_together(
        self, combined: CombinedCalls, calls: Sequence[tuple[Session, Message]]
    ) -> list[bytes | None] | None:
        """Like `execute`, for several calls of one combination: returns their replies. None: each is to be executed by
        itself.

        A call that the user may not make, and one that the store answers with an exception, is refused without the
        others. Never raises.
        """
        started = time.perf_counter()
        outcomes: list[Any] = [None] * len(calls)
        requests: dict[int, Any] = {}
        objects: list[tuple[str, ...]] = [()] * len(calls)
        records_objects = self._audit.records_objects and self._audit.wants(is_write=True)
        for number, (session, message) in enumerate(calls):
            argument = self._handlers[message.name].request or ""
            call_context.begin(session.identifier, session.user, session.peer, fills_cache=session.fills_cache)
            if records_objects:
                objects[number] = named_objects(message.args)
            try:
                # The guard checks before the function runs, and returns its answer unchanged: here, the request.
                call = Call(message.name, session, self._stores)
                hand_on = partial(_handed_on, argument)
                requests[number], _ = self._value(hand_on, call, message.args)
            except Exception as error:
                outcomes[number] = error
        statements, database_s = 0, 0.0
        if requests:
            answered = combined.execute(list(requests.values()))
            if answered is None:
                call_context.end()
                return None
            statements, database_s = call_context.statements, call_context.database_s
            for number, outcome in zip(requests, answered, strict=True):
                outcomes[number] = outcome
        replies = []
        for (session, message), outcome, named in zip(calls, outcomes, objects, strict=True):
            call_context.begin(session.identifier, session.user, session.peer, fills_cache=session.fills_cache)
            # Shared by all of them.
            call_context.statements, call_context.database_s = statements, database_s
            reported, reply = self._reply(message, False, partial(_raised_or_returned, outcome))
            self._account(self._handlers[message.name], session, message, reported, named, started)
            replies.append(reply)
        call_context.end()
        return replies

    def _record(self, session: Session, command: str, method: str, outcome: str, objects: tuple[str, ...]) -> None:
        if outcome == "denied":
            command = f"denied: {command}"
        more = Audited(
            *(method, outcome, session.principal, session.mechanism, objects, session.real_user),
            events=tuple(call_context.events),
        )
        self._audit.record(session.user, session.peer, command, more)

    def refuse(self, message: Message, reason: str) -> bytes | None:
        """The reply to a call that is not begun: MetaException, or a fault if the method declares no exception."""
        self._note(message.name, "error", time.perf_counter())
        return self._refusal(message, MetaException(reason))

    def _refusal(self, message: Message, error: Exception) -> bytes | None:
        method = message.method
        if method is None or not message.expects_reply:
            return None
        found = declared_exception(method, error)
        if found is None:
            return encode_exception(message, application_exception(message.name, error))
        result = method.result()
        setattr(result, exception_attribute(message.name, message.args, found[1], found[0]), found[1])
        return encode_reply_from_payload(message, encode_payload(message.encoding, method, result))

    def _run_registered(
        self, operations: Operations, handler: Handler, session: Session, message: Message
    ) -> tuple[str, bytes | None]:
        """Like `_run`, shown to administrators while it is running and afterwards."""
        about = _subject(message)
        operation = operations.begin("call", message.name, about, f"{session.user} at {session.peer}")
        ended = "error"
        try:
            outcome, reply = self._run(handler, session, message, False)
            ended = outcome if outcome == "ok" else call_context.failure or outcome
            return outcome, reply
        finally:
            operations.end(operation, ended)

    def _value(self, function: HandlerFunction, call: Call, arguments: Any) -> tuple[Any, Decisions | None]:
        """The answer of the function, as far as the user may see it, and the decisions by which it was authorized."""
        check_request_size(call.method, arguments)
        if self._guard is None:
            return function(call, arguments), None
        decisions = self._guard.decisions_for(call.method, call.session)
        return self._guard.answer(call, decisions, function, arguments), decisions

    def _run(self, handler: Handler, session: Session, message: Message, keeps: bool) -> tuple[str, bytes | None]:
        call = Call(message.name, session, self._stores)
        if keeps and self._keep is not None:
            call = Call(message.name, session, self._stores, call_context.source.from_elsewhere)
        return self._reply(message, keeps, lambda: self._value(handler.function, call, message.args))

    def _reply(
        self, message: Message, keeps: bool, answer: Callable[[], tuple[Any, Decisions | None]]
    ) -> tuple[str, bytes | None]:
        """The outcome, and the reply for what `answer` returns or raises."""
        method = message.method
        assert method is not None
        result = None if method.oneway else method.result()
        outcome = "ok"
        decisions: Decisions | None = None
        try:
            value, decisions = answer()
            if result is not None and method.has_value:
                result.success = value
        except AccessDenied as denied:
            reply = self._refusal(message, denied.error)
            forget_frames(denied)
            return "denied", reply
        except Exception as raised:
            error = lacking(method, message.args, raised)
            reported = str(getattr(error, "message", None) or error)
            call_context.failure = f"{type(error).__name__}: {reported[:_LONGEST_FAILURE]}"
            found = declared_exception(method, error)
            if found is None or result is None:
                if result is None:
                    name = message.name
                    log_fault(f"one-way call {name} failed", reported, f"one-way {name} {type(error).__name__}", error)
                    reply = None
                else:
                    reply = encode_exception(message, application_exception(message.name, error))
                forget_frames(error)
                forget_frames(raised)
                return "error", reply
            outcome = "fault"
            setattr(result, exception_attribute(message.name, message.args, found[1], found[0]), found[1])
            for one in (found[1], error, raised):
                forget_frames(one)
        if result is None or not message.expects_reply:
            return outcome, None
        try:
            pieces = encode_in_pieces(message.encoding, method, result.success) if method.has_value else None
            if pieces is not None and outcome == "ok":
                self._record_size(message, sum(map(len, pieces)))
                if not keeps or not self._keeps_pieces(message, pieces, decisions):
                    return outcome, join_reply(message, pieces)
                payload = b"".join(pieces)
            else:
                payload = self._encode(message, method, result)
                self._record_size(message, len(payload))
            if keeps and outcome == "ok":
                self._keep_answer(message, payload, decisions)
            return outcome, encode_reply_from_payload(message, payload)
        except Exception as error:
            name = message.name
            log_fault(f"the reply of {name} cannot be encoded", str(error), f"reply of {name}", error)
            fault = TApplicationException(
                TApplicationException.INTERNAL_ERROR, f"the reply of {message.name} cannot be encoded: {error}"
            )
            return "error", encode_exception(message, fault)

    def _encode(self, message: Message, method: MethodSpec, result: Any) -> bytes:
        """Encodes the result. Other threads may run meanwhile if the method has had large answers recently. Raises
        UnencodableReply."""
        if self._long_replies.expects(method.name):
            payload = b"".join(encode_payload_parts(message.encoding, method, result))
        else:
            payload = encode_payload(message.encoding, method, result)
        self._long_replies.note(method.name, len(payload))
        return payload

    def _keeps_pieces(self, message: Message, pieces: list[bytes], decisions: Decisions | None) -> bool:
        """Whether a reply in pieces is kept: small ones always, large ones when they are requested again."""
        if len(pieces) <= MAX_SUMMED_PIECES and sum(map(len, pieces)) <= ALWAYS_KEPT_ANSWER_BYTES:
            return True
        key = message.key_bytes
        tag = decisions.tag if decisions is not None else b""
        return key is not None and self._keep is not None and self._keep.wants_large_answer(key + tag)

    def _keep_answer(self, message: Message, payload: bytes, decisions: Decisions | None) -> None:
        """Keeps the encoded reply for requests with the same bytes, if it came from memory that has not changed since.

        `decisions`: those by which the call was authorized. If others are in force by now, the reply is not kept.
        """
        key = message.key_bytes
        template = reply_template(message, payload) if key is not None else None
        if template is not None and key is not None and self._keep is not None:
            is_large = template.size_bytes > LARGE_REPLY_BYTES
            render = template.render_pieces if is_large else template.render
            if decisions is None or self._guard is None:
                self._keep.keep_answer(key, message.name, render, template.size_bytes)
                return
            tag, policy, authorizer = decisions.tag, decisions.policy, self._guard.authorizer
            self._keep.keep_answer(
                key + tag, message.name, render, template.size_bytes, lambda: authorizer.policy is policy
            )

    def _note(self, method: str, outcome: str, started: float) -> float:
        seconds = time.perf_counter() - started
        if self._observe is not None:
            self._observe(method, outcome, seconds)
        if seconds >= self.slow_call_s:
            _log.warning("slow call: %s took %.3f s (%s): %s", method, seconds, outcome, call_context.explained())
        return seconds


def _argument_of(name: str, arguments: Any) -> Any:
    return getattr(arguments, name) if name else arguments


def _handed_on(name: str, call: Call, arguments: Any) -> Any:
    return _argument_of(name, arguments)


def _raised_or_returned(outcome: Any) -> tuple[Any, None]:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome, None


def _subject(message: Message) -> str:
    """The object that a change is about, if its request names one plainly: ``db=… tbl=…``."""
    try:
        named = default_audit(message.name)(message.args).partition(":")[2].strip()
        return named or _subject_of_first(message.args)
    except (AttributeError, TypeError):
        return ""


def _subject_of_first(struct: Any) -> str:
    """The object of a request that has no name of its own: that of the first element in its lists."""
    for field in filter(None, struct.thrift_spec):
        value = getattr(struct, field[2])
        first = value[0] if isinstance(value, list) and value else value
        if not hasattr(first, "thrift_spec"):
            continue
        for database, name in _NAMES_IN_OBJECTS:
            if isinstance(getattr(first, name, None), str):
                return f"db={getattr(first, database)} tbl={getattr(first, name)}"
        return _subject_of_first(first)
    return ""


def _audit_text(handler: Handler, message: Message) -> str:
    """The text for the audit log; only the name of the method if the request lacks what the text is made of."""
    try:
        return handler.audit(message.args)
    except (AttributeError, TypeError):
        return message.name
