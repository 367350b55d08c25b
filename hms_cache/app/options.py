"""The settings in the words of the parts: each part has options of its own and knows nothing of the configuration."""

from __future__ import annotations

from hms_cache.app.system.open_files import connections_allowed
from hms_cache.config import Settings, finite_s
from hms_cache.input_limits import InputLimits
from hms_cache.server.listener import Limits
from hms_cache.server.service import ServerOptions


def server_options(settings: Settings) -> ServerOptions:
    """Of the listener; a limit of ``inf`` is 0 there."""
    server = settings.server
    return ServerOptions(
        limits=Limits(
            max_message_bytes=server.max_message_bytes,
            max_connections=connections_allowed(server.max_connections),
            max_connections_per_address=server.max_connections_per_address,
            max_in_flight=server.max_in_flight,
            buffer_budget_bytes=server.buffer_budget_bytes,
            max_session_bytes=server.max_session_bytes,
            sessions_budget_bytes=server.sessions_budget_bytes,
            request_timeout_s=finite_s(server.request_timeout_s) or 0,
            message_timeout_s=finite_s(server.message_timeout_s) or 0,
            write_timeout_s=finite_s(server.write_timeout_s) or 0,
            first_call_timeout_s=finite_s(server.first_call_timeout_s) or 0,
            idle_timeout_s=finite_s(server.idle_timeout_s) or 0,
            drain_timeout_s=server.drain_timeout_s,
            max_calls_per_user=server.max_calls_per_user,
            max_calls_per_address=server.max_calls_per_address,
        ),
        threads=server.threads,
        transaction_threads=server.transaction_threads,
        write_threads=server.write_threads,
        heavy_threads=server.heavy_threads,
        max_waiting_per_lane=server.max_waiting_per_lane,
        audit=server.audit,
        audit_format=server.audit_format,
        audit_queue_bytes=server.audit_queue_bytes,
        slow_call_s=settings.log.slow_call_s,
    )


def limits_of_inputs(settings: Settings) -> InputLimits:
    """Of patterns, expressions, lists and names: the section `limits` has a setting for each."""
    return InputLimits(**settings.limits.model_dump())
