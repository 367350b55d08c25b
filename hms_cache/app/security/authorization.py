"""Creates the authorizer from the configuration."""

from __future__ import annotations

from contextlib import ExitStack

from hms_cache.app.background import BackgroundTask
from hms_cache.authorization.cached_groups import CachedGroups, GroupsOf, Principal, no_groups_of
from hms_cache.authorization.external import ExternalAuthorizer
from hms_cache.authorization.policy import DIRECTORY_GROUPS, TOKEN_GROUPS, PolicyError
from hms_cache.authorization.policy_file import PolicyFile
from hms_cache.authorization.policy_service import PolicyService, ServiceDecisionSource, ServiceOptions
from hms_cache.authorization.standard_rights import GrantSource, StandardDecisionSource
from hms_cache.cache.reads.assembly import Cache
from hms_cache.config import Settings
from hms_cache.errors import StartupError

_STOP_TIMEOUT_S = 2.0
"""Time limit for reading a file that does not respond; the thread then ends with the process."""

LOGGED_MAX_AGE_S = 60.0
"""Maximum age of decisions if grants are logged: changes by other metastores are not logged."""

_REMEDY = "See docs/security.md for what a policy file says."


def authenticates(settings: Settings) -> bool:
    """Whether clients of a port with these settings authenticate."""
    given = settings.authentication
    return given.kerberos_enabled or given.plain != "off" or bool(given.jwt_jwks_url)


def require_authentication(settings: Settings) -> None:
    """Checks one port's settings. Raises StartupError if authorization would rely on names that any client can
    claim."""
    if settings.authorization.provider != "off" and not (authenticates(settings) or settings.security.accept_insecure):
        raise StartupError(
            f"authorization.provider = {settings.authorization.provider}: clients of port {settings.server.port} do not"
            " authenticate, so anyone could use another's name",
            remedy="Set authentication.kerberos_enabled, authentication.plain or authentication.jwt_jwks_url, and name"
            " no none in a port's mechanisms, or accept it: --set security.accept_insecure=true.",
        )


def policy_file(settings: Settings) -> PolicyFile | None:
    """The policy in a file; None with another provider. Raises StartupError for an unusable configuration."""
    file = settings.authorization.policy_file
    if settings.authorization.provider != "policy":
        return None
    assert file is not None, "the settings were checked"
    try:
        return PolicyFile(file, _sources(settings))
    except PolicyError as error:
        raise StartupError(f"authorization.policy_file: {error}", remedy=_REMEDY) from error


def _sources(settings: Settings) -> frozenset[str]:
    """Sources of groups that a policy may use in addition to its own."""
    found = {DIRECTORY_GROUPS: settings.authorization.directory_groups}
    found[TOKEN_GROUPS] = bool(settings.authentication.jwt_groups_claim)
    return frozenset(name for name, is_on in found.items() if is_on)


def policy_service(settings: Settings) -> PolicyService | None:
    """The policy service; None with another provider. Raises StartupError for an unusable configuration."""
    given = settings.authorization
    if given.provider != "opa":
        return None
    ca_file = str(given.opa_ca_file) if given.opa_ca_file is not None else None
    try:
        return PolicyService(ServiceOptions(given.opa_url, given.opa_timeout_s, ca_file))
    except (OSError, ValueError) as error:
        raise StartupError(
            f"authorization.opa_url or opa_ca_file cannot be used: {error}",
            remedy="Give the address of a rule, such as http://127.0.0.1:8181/v1/data/hms/allow.",
        ) from error


def external_authorizer(
    settings: Settings, grants: GrantSource, service: PolicyService | None, groups: CachedGroups | None
) -> ExternalAuthorizer | None:
    """The authorizer that asks the database or the policy service; None with another provider. `groups`: the
    directory's groups, if they count."""
    given = settings.authorization
    if given.provider == "sql":
        services = frozenset(given.service_users)
        max_age_s = given.sql_max_age_s
        if given.sql_grants == "logged" and settings.cache.enabled:
            max_age_s = max_age_s or LOGGED_MAX_AGE_S
        max_age_s, groups_of = _with_groups(groups, max_age_s)
        return ExternalAuthorizer(
            lambda user, of_token: StandardDecisionSource(
                grants, Principal(user, of_token, groups_of), is_service=user in services
            ),
            max_age_s,
        )
    if service is not None:
        max_age_s, groups_of = _with_groups(groups, given.opa_max_age_s)
        return ExternalAuthorizer(
            lambda user, of_token: ServiceDecisionSource(service, Principal(user, of_token, groups_of)), max_age_s
        )
    return None


def _with_groups(groups: CachedGroups | None, max_age_s: float) -> tuple[float, GroupsOf]:
    """The maximum age of decisions, and the source of their groups: asked for each decision if decisions do not outlive
    groups."""
    if groups is None:
        return max_age_s, no_groups_of
    return (groups.max_age_s, groups.of) if max_age_s >= groups.max_age_s else (max_age_s, groups.recent)


def follow_grants(settings: Settings, authorizer: ExternalAuthorizer, cache: Cache) -> None:
    """Makes events of the log invalidate earlier decisions, if changes of grants are logged."""
    if settings.authorization.provider != "sql" or settings.authorization.sql_grants != "logged":
        return
    authorizer.is_current = lambda: cache.freshness.ensure(wants_proof=True)
    cache.shared.rights_listener = authorizer.forget


def keep_current(policy: PolicyFile, interval_s: float, starting: ExitStack) -> None:
    """Checks the file for changes from now on."""

    def check() -> float:
        policy.reload_if_changed()
        return interval_s

    task = BackgroundTask("hms-policy", check)
    task.start()
    starting.callback(task.stop, _STOP_TIMEOUT_S)


def reload(policy: PolicyFile) -> None:
    """Reloads the file now. Raises StartupError, and then the policy is unchanged."""
    try:
        policy.reload()
    except PolicyError as error:
        raise StartupError(f"authorization.policy_file: {error}", remedy=_REMEDY) from error
