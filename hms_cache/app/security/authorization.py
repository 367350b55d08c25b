"""The authorizer of the configuration."""

from __future__ import annotations

from contextlib import ExitStack

from hms_cache.app.background import BackgroundTask
from hms_cache.authorization.policy import PolicyError
from hms_cache.authorization.policy_file import PolicyFile
from hms_cache.config import Settings
from hms_cache.errors import StartupError

_STOP_TIMEOUT_S = 2.0
"""For a look at a file that does not answer: the thread ends with the process."""

_REMEDY = "See docs/security.md for what a policy file says."


def authorizer(settings: Settings) -> PolicyFile | None:
    """The policy in force; None when everybody may do everything. Raises StartupError for what cannot work."""
    if settings.authorization.provider == "off":
        return None
    authenticates = settings.authentication.kerberos_enabled or settings.authentication.plain != "off"
    if not (authenticates or settings.security.accept_insecure):
        raise StartupError(
            "authorization.provider = policy: clients do not authenticate, so anyone could use another's name",
            remedy="Set authentication.kerberos_enabled or authentication.plain, or accept it:"
            " --set security.accept_insecure=true.",
        )
    file = settings.authorization.policy_file
    assert file is not None, "the settings were checked"
    try:
        return PolicyFile(file)
    except PolicyError as error:
        raise StartupError(f"authorization.policy_file: {error}", remedy=_REMEDY) from error


def keep_current(policy: PolicyFile, interval_s: float, starting: ExitStack) -> None:
    """Looks at the file again and again, from now on."""

    def look() -> float:
        policy.reload_if_changed()
        return interval_s

    task = BackgroundTask("hms-policy", look)
    task.start()
    starting.callback(task.stop, _STOP_TIMEOUT_S)


def reload(policy: PolicyFile) -> None:
    """Takes the file now. Raises StartupError, with the policy as it was."""
    try:
        policy.reload()
    except PolicyError as error:
        raise StartupError(f"authorization.policy_file: {error}", remedy=_REMEDY) from error
