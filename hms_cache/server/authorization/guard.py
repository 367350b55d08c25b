"""Authorization between a call and its handler: checks everything that a call needs, and filters the answer.

Decisions are made by name, before the database is read, so they do not depend on whether an object exists. If the right
to read is missing, the client gets Hive's error for a missing object. If another right is missing, the error names the
action and the object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hms_cache.authorization.decisions import METASTORE, Action, Authorizer, Decisions, SecuredObject, UndecidedError
from hms_cache.call_context import for_write
from hms_cache.metadata.lease_names import leased_database
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.server.authorization import grantors, ownership
from hms_cache.server.authorization.answers import (
    EMPTY,
    FILTERS,
    check_named_database,
    readable_names,
    readable_tables,
    readable_views,
    secured,
)
from hms_cache.server.authorization.events import shown_events
from hms_cache.server.authorization.grantees import shows_only_own
from hms_cache.server.authorization.objects import as_sent, constrained_beside, objects_of
from hms_cache.server.authorization.rules import CHANGES_GRANTS, REPLACES, RULES, WITHOUT_CATALOGS, Rule, RuleKind
from hms_cache.server.calls import Call, HandlerFunction
from hms_cache.server.handlers.names import database_name
from hms_cache.server.session import Session
from hms_cache.store.contract.tables import UsedByViews
from hms_cache.store.transactions.names import plain_database
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    DataOperationType,
    GrantRevokeType,
    HiveObjectType,
    LockComponent,
    LockType,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    TxnType,
    UnknownTableException,
)
from hms_cache.values import frozen

_ANY_CHANGE = (Action.ALTER, Action.DROP, Action.WRITE, Action.UPDATE, Action.DELETE)
"""Rights on existing objects."""

_OBJECTS_OF_GRANTS = (HiveObjectType.DATABASE, HiveObjectType.TABLE, HiveObjectType.COLUMN, HiveObjectType.PARTITION)
_READING = (DataOperationType.SELECT, DataOperationType.UNSET, DataOperationType.NO_TXN)
_OF_UNKNOWN_TABLE = frozenset(
    {
        *("get_fields", "get_fields_req", "get_fields_with_environment_context"),
        *("get_schema", "get_schema_req", "get_schema_with_environment_context"),
    }
)
"""Methods whose error for a missing table is UnknownTableException."""

_MOVES = frozenset({"exchange_partition", "exchange_partitions"})
"""Methods that move partitions out of one table into another. Their requests name the source in different fields."""

_WITH_CONSTRAINTS = frozenset({"create_table_req", "create_table_with_constraints"})
_CONSTRAINTS = (
    *("primaryKeys", "foreignKeys", "uniqueConstraints", "notNullConstraints", "defaultConstraints"),
    "checkConstraints",
)
"""Fields of requests that create a table. What they hold may be about another table."""

_REPLICATION_FIELDS = ("replPolicy", "replLastIdInfo", "replSrcTxnIds", "writeEventInfos", "keyValue")
"""Fields of transaction requests that name changed tables in a form that is not checked otherwise."""


class AccessDenied(Exception):
    """The call is refused; `error` is the exception for the client."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@frozen
class _Needed:
    """One check by the decision point: may one of these actions be done on the object?"""

    actions: tuple[Action, ...]
    of: SecuredObject
    shown_is_enough: bool = False
    may_be_made: bool = False
    """A principal that may create the object may do this, too, as long as the object does not exist."""

    @property
    def checks(self) -> list[tuple[Action, SecuredObject]]:
        """Questions for one call, at most."""
        return [(action, self.of) for action in (*self.actions, *[Action.CREATE] * self.may_be_made)]


class Guard:
    """See the module. Thread-safe: everything known about a client is in its session."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer

    def decisions(self, session: Session) -> Decisions:
        """Decisions about the session's user by the policy in force."""
        known = session.decisions
        if known is None or known.policy is not self.authorizer.policy:
            known = session.decisions = self.authorizer.decisions(session.user, session.token_groups)
        return known

    def decisions_for(self, method: str, session: Session) -> Decisions:
        """Decisions about the session's user for this call. They may wait only if `may_wait` is set. Raises
        AccessDenied."""
        if session.given_decisions is not None:
            return session.given_decisions
        if not self.may_wait(method):
            return self.decisions(session)
        try:
            found = self.authorizer.proven_decisions(session.user, session.token_groups)
        except UndecidedError as error:
            raise AccessDenied(MetaException(f"Permission denied: {error}")) from error
        if found.policy is self.authorizer.policy:
            session.decisions = found
        return found

    def may_wait(self, method: str) -> bool:
        """Whether deciding about a method may have to wait for another system."""
        rule = RULES.get(method)
        if rule is None or not self.authorizer.is_external or rule.kind is RuleKind.OPEN:
            return False
        return rule.kind is not RuleKind.MEMBER or self.authorizer.waits_for_members

    def answer(self, call: Call, decisions: Decisions, function: HandlerFunction, arguments: Any) -> Any:
        """The handler's answer, as far as the user may see it. Raises AccessDenied, and whatever the handler raises."""
        try:
            return self._answer(call, decisions, function, arguments)
        except UndecidedError as error:
            raise AccessDenied(MetaException(f"Permission denied: {error}")) from error

    def _answer(self, call: Call, decisions: Decisions, function: HandlerFunction, arguments: Any) -> Any:
        method = call.method
        rule = RULES.get(method)
        if rule is None:
            raise AccessDenied(_denied(call.session, "call", method))
        # Before the handler runs, since some handlers complete the structs of the request.
        needs = _needs(rule, method, arguments, call.session)
        decisions.prepare([check for need in needs for check in need.checks])
        for need in needs:
            self._require(call, decisions, need, arguments)
        if (rule.kind is not RuleKind.METASTORE or method in ownership.RUN_BY) and ownership.names_owned(
            method, arguments
        ):
            _check_owner(call, decisions, arguments)
        if shows_only_own(method, arguments, call.session.user, decisions):
            call.keep_no_answer()  # users of one decision class share it, and one may be the grantee
        if rule.kind is RuleKind.GRANTS:
            _check_grants(decisions, method, arguments, call.session)
        grantors.claim(arguments, call.session.user, decisions)
        if rule.kind is not RuleKind.OPEN and not decisions.has_any:
            raise AccessDenied(_denied(call.session, "call", method))
        if rule.kind is RuleKind.FILTERED:
            _check_database(decisions, method, arguments)
            if (empty := EMPTY.get(method)) is not None and not _is_shown(decisions, method, arguments):
                return empty(arguments)
            call = replace(
                call,
                only_readable=lambda tables: readable_tables(decisions, tables),
                readable_names=lambda database, names: readable_names(decisions, database, names),
            )
        if rule.kind is RuleKind.EVENTS and not decisions.allow(Action.SERVICE, METASTORE):
            return shown_events(
                decisions,
                arguments.rqst,
                lambda requested: function(call, methods.get_next_notification_args(requested)),
            )
        try:
            answer = function(call, arguments)
        except UsedByViews as error:
            raise readable_views(decisions, error) from None
        finally:
            if method in CHANGES_GRANTS:
                self.authorizer.forget()
        shown = FILTERS.get(method)
        return answer if shown is None else shown(decisions, arguments, answer)

    def _require(self, call: Call, decisions: Decisions, need: _Needed, arguments: Any) -> None:
        if any(decisions.allow(action, need.of) for action in need.actions):
            return
        if need.shown_is_enough and decisions.show(need.of):
            return
        if need.may_be_made and decisions.allow(Action.CREATE, need.of) and not _is_there(call, need.of):
            return
        if Action.READ in need.actions and need.of.catalog is not None:
            raise AccessDenied(_missing(call.method, as_sent(arguments, need.of)))
        needed = " or ".join(action.value for action in need.actions)
        raise AccessDenied(_denied(call.session, needed, str(need.of)))


def _needs(rule: Rule, method: str, arguments: Any, session: Session) -> Sequence[_Needed]:
    match rule.kind:
        case RuleKind.OPEN | RuleKind.MEMBER | RuleKind.FILTERED | RuleKind.GRANTS | RuleKind.EVENTS:
            return ()
        case RuleKind.METASTORE:
            return (_Needed(rule.actions, METASTORE),)
        case RuleKind.OBJECTS | RuleKind.SHOWN:
            named = objects_of(arguments)
            objects = named.objects or (frozenset({METASTORE}) if not named.referenced else frozenset())
            if method in WITHOUT_CATALOGS:
                objects |= {one._replace(catalog=DEFAULT_CATALOG) for one in objects if one.database is not None}
            shown = rule.kind is RuleKind.SHOWN
            actions = rule.actions or (Action.READ,)
            found = [_Needed(actions, one, shown) for one in sorted(objects, key=_order)]
            referenced = sorted(named.referenced, key=_order)
            if not objects:  # a request about the other end alone
                found += [_Needed(actions, one) for one in referenced]
            # A table that is created may refer to itself: who may create it reads nothing by that.
            found += [_Needed((Action.READ, *(actions if one in objects else ())), one) for one in referenced]
            if method == "get_materialization_invalidation_info":  # transactions know no catalogs
                found += [_Needed((Action.READ,), one._replace(catalog=DEFAULT_CATALOG)) for one in referenced]
            if method == "map_schema_version_to_serde":  # by its name alone, also that of any table
                found.append(_Needed((Action.READ,), METASTORE))
            if method in REPLACES:
                found += [_Needed((Action.ALTER,), one) for one in sorted(objects, key=_order)]
            if method in _WITH_CONSTRAINTS:
                found += [_Needed((Action.ALTER,), one) for one in sorted(_constrained(arguments), key=_order)]
            if method in _MOVES:
                found += [_Needed((Action.DELETE,), one) for one in sorted(objects, key=_order)]
            if _replicates(arguments):
                found.append(_Needed((Action.SERVICE,), METASTORE))
            return found
        case RuleKind.TRANSACTION:
            return (_Needed((Action.SERVICE,), METASTORE),) if _replicates(arguments) else ()
        case RuleKind.LOCK:
            components = getattr(arguments.rqst, "component", None) or ()
            return [need for component in components for need in _locked(component)]
        case RuleKind.OWN_GRANTS:
            return () if _is_own(arguments, session) else (_Needed(rule.actions, METASTORE),)


def _constrained(arguments: Any) -> frozenset[SecuredObject]:
    """Tables, other than the created one, that a request changes by its constraints."""
    request = getattr(arguments, "request", None) or arguments
    table = getattr(request, "table" if request is not arguments else "tbl", None)
    if table is None:
        return frozenset()
    return constrained_beside(table, [one for name in _CONSTRAINTS for one in getattr(request, name, None) or ()])


def _check_owner(call: Call, decisions: Decisions, arguments: Any) -> None:
    """Checks the owners of the transactions and locks that a request names. Raises AccessDenied."""
    user = call.session.user
    is_service: bool | None = None
    if call.method in ownership.TRANSFERRING or call.method in ownership.RUN_BY:
        is_service = decisions.allow(Action.SERVICE, METASTORE)
        if is_service:
            return
        ownership.claim(call.method, arguments, user)
    error = ownership.foreign(call.method, arguments, user, call.stores.transactions)
    if error is not None and (is_service is False or not decisions.allow(Action.SERVICE, METASTORE)):
        raise AccessDenied(error)


def _check_grants(decisions: Decisions, method: str, arguments: Any, session: Session) -> None:
    """Checks who may grant or revoke this. Raises AccessDenied."""
    request = getattr(arguments, "request", None) or arguments
    revokes = method == "revoke_privileges" or getattr(request, "requestType", None) == GrantRevokeType.REVOKE
    bag = getattr(request, "privileges", None)
    allowed: set[tuple[str | None, SecuredObject]] = set()
    for grant in (bag.privileges if bag is not None else None) or ():
        reference, info = grant.hiveObject, grant.grantInfo
        of = METASTORE
        if reference is not None and reference.objectType in _OBJECTS_OF_GRANTS and reference.dbName:
            has_table = reference.objectType != HiveObjectType.DATABASE
            of = secured(reference.catName, reference.dbName, (reference.objectName or "") if has_table else None)
        privileges = str((info.privilege if info is not None else None) or "").split(",")
        requested = {(None if revokes else privilege.strip(), of) for privilege in privileges} - allowed
        if not all(decisions.may_grant(*one) for one in requested):
            raise AccessDenied(_denied(session, "change grants on", str(of)))
        allowed |= requested


def _order(one: SecuredObject) -> tuple[str, ...]:
    return tuple(name or "" for name in one)


def _replicates(arguments: Any) -> bool:
    requests = [getattr(arguments, field[2]) for field in arguments.thrift_spec if field is not None]
    if any(getattr(request, "txn_type", None) == TxnType.REPL_CREATED for request in requests):
        return True  # such transactions live for days without a heartbeat
    return any(getattr(request, field, None) for request in requests for field in _REPLICATION_FIELDS)


def _locked(component: LockComponent) -> Iterator[_Needed]:
    """Checks the components of a lock request.

    Locks know no catalogs: whichever catalog a component names, the table of this name in the default catalog is
    locked, too. A principal that may create a table may lock its name before the table exists, as Iceberg does, but not
    an existing table: an exclusive lock blocks everybody else as long as it is renewed, and a shared lock blocks who
    wants to drop the table. The lease of a job is checked like a change of the object that the job works on.
    """
    database = plain_database(component.dbname or "")
    table = component.tablename or None  # an empty name is none to `lock`, which locks the whole database
    leased = leased_database(database)
    if leased is not None:
        yield _Needed(_ANY_CHANGE, secured(*leased, table), may_be_made=True)
        return
    reads = component.type == LockType.SHARED_READ and component.operationType in (None, *_READING)
    for catalog in sorted({component.catName or DEFAULT_CATALOG, DEFAULT_CATALOG}):
        of = secured(catalog, database, table)
        if reads:
            yield _Needed((Action.READ, *_ANY_CHANGE), of, shown_is_enough=of.table is None, may_be_made=True)
        else:
            yield _Needed(_ANY_CHANGE, of, may_be_made=True)


@for_write
def _is_there(call: Call, of: SecuredObject) -> bool:
    """Whether there is a table or database of this name."""
    database = DatabaseName(of.catalog or DEFAULT_CATALOG, of.database or "")
    try:
        if of.table is None:
            call.stores.reads.databases.get_database(database)
        else:
            call.stores.reads.tables.get_table(TableName(*database, of.table))
    except NoSuchObjectException:
        return False
    return True


def _is_own(arguments: Any, session: Session) -> bool:
    """Whether the request asks for the grants of its own user."""
    request = getattr(arguments, "request", None) or arguments
    kind = getattr(request, "principal_type", PrincipalType.USER)
    name = getattr(request, "principal_name", None) or getattr(request, "user_name", None)
    groups = getattr(request, "group_names", None)
    return kind == PrincipalType.USER and name == session.user and not groups


def _check_database(decisions: Decisions, method: str, arguments: Any) -> None:
    """For reads of tables by name."""
    if method == "get_table_objects_by_name":
        name = database_name(arguments.dbname)
    elif method == "get_table_objects_by_name_req" and arguments.req.dbName:
        name = database_name(arguments.req.dbName, arguments.req.catName)
        if arguments.req.tblNames is None and "*" in name.database:
            return
    else:
        return
    check_named_database(decisions, *name)


def _is_shown(decisions: Decisions, method: str, arguments: Any) -> bool:
    """Whether the user may know of the database whose contents are listed."""
    source = getattr(arguments, "request", None) or getattr(arguments, "req", None) or arguments
    texts = (getattr(source, name, None) for name in ("db_name", "dbName", "dbname", "database"))
    catalogs = (getattr(source, name, None) for name in ("catalogName", "catalog"))
    text, catalog = next(filter(None, texts), None), next(filter(None, catalogs), None)
    if text is None:
        return True  # the handler says what is wrong with that
    return decisions.show(secured(*database_name(text, catalog)))


def _missing(method: str, of: SecuredObject) -> Exception:
    """The error for a missing object, which is named as in the request."""
    error: Exception
    if of.database is None:
        error = NoSuchObjectException(f"No catalog {of.catalog}")
    elif of.table is None:
        error = NoSuchObjectException(f"database {of.catalog}.{of.database}")
    else:
        text = f"{of.catalog}.{of.database}.{of.table} table not found"
        error = UnknownTableException(text) if method in _OF_UNKNOWN_TABLE else NoSuchObjectException(text)
    return error


def _denied(session: Session, action: str, of: str) -> Exception:
    error: Exception = MetaException(f"Permission denied: user {session.user} may not {action} {of}")
    return error
