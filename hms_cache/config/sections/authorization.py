"""Who may do what."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from hms_cache.config.quantities import OptionalPath, Seconds
from hms_cache.config.setting import Section, setting


class AuthorizationSettings(Section):
    """Who may do what. With a provider on, what it does not grant is refused. See docs/security.md."""

    provider: Literal["off", "policy"] = setting(
        "off",
        "policy: a file says who may do what. Clients must authenticate (section authentication), or anyone could use"
        " another's name.",
    )
    policy_file: OptionalPath = setting(
        None, "TOML file with users' groups and roles, and what is granted to them. Taken anew when it changes."
    )
    policy_check_interval_s: Seconds = setting(
        1.0,
        "How often to look whether the policy file has changed; SIGHUP takes it at once.",
        unit="seconds",
        reason="A look is one stat(); a right that was withdrawn ends a second later.",
        gt=0,
        le=3600,
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.provider == "policy" and self.policy_file is None:
            raise ValueError("provider = policy needs policy_file")
        return self
