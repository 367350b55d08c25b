"""Reads the sources of settings, in order of precedence: command line, environment, TOML file, site files, defaults.

All problems are collected before they are reported, each with the source of the value.
"""

from __future__ import annotations

import difflib
import os
import shlex
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from hms_cache.config.credential_providers import CredentialProviders
from hms_cache.config.database_url import refused_protection, secrets_of
from hms_cache.config.secrets import MASK, is_secret_name, redacted, remember
from hms_cache.config.setting import facts_of
from hms_cache.config.settings import ENVIRONMENT_PREFIX, Configuration, Settings, all_settings, section_types
from hms_cache.config.site_file import SiteProperty, read_site_files, settings_of_site
from hms_cache.config.site_review import review
from hms_cache.config.unhonoured import ACCEPT_SETTING, SiteReview, Unhonoured
from hms_cache.errors import ConfigurationError

#: Time limit of a command that prints a secret: a vault answers within a second, and a command that hangs must not
#: block the start.
_COMMAND_TIMEOUT_S = 20.0
#: The environment variable with the path of the TOML file, for containers whose command is fixed.
CONFIG_FILE_VARIABLE = "HMS_CACHE_CONFIG"


class _Layers:
    """The values collected so far. Sources are added in order of precedence: the first to set a name keeps it."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, Any]] = {section: {} for section in section_types()}
        self.origins: dict[str, str] = {}
        self.problems: list[str] = []

    def offer(self, section: str, key: str, value: Any, origin: str) -> None:
        """Adds the value, unless an earlier source has set it. An unknown name is a problem, with a suggestion."""
        types = section_types()
        if section not in types:
            known = [reference.name for reference in all_settings()]
            self.problems.append(f"{origin}: no setting {section}.{key}{_suggestion(f'{section}.{key}', known)}")
        elif key not in types[section].model_fields:
            names = [f"{section}.{name}" for name in types[section].model_fields]
            others = [reference.name for reference in all_settings()]
            elsewhere = [name for name in others if name.endswith(f".{key}")]
            name = f"{section}.{key}"
            hint = _suggestion(name, elsewhere) or _suggestion(name, names) or _suggestion(name, others)
            self.problems.append(f"{origin}: no setting {section}.{key}{hint}")
        elif f"{section}.{key}" not in self.origins:
            self.values[section][key] = value
            self.origins[f"{section}.{key}"] = origin


def _secret_settings() -> list[tuple[str, str]]:
    """Returns section and key of each secret. Each may also come from a file or a command, named by settings with the
    same name and `_file` or `_command` at the end."""
    return [(one.section, one.key) for one in all_settings() if one.field.annotation is SecretStr]


def _suggestion(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def load(
    *,
    command_line: Mapping[str, Any] | None = None,
    config_file: Path | None = None,
    site_files: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
) -> Configuration:
    """Reads all sources. Raises :class:`ConfigurationError` with every problem found.

    :param command_line: values by ``section.key``; None stands for an option that was not given.
    :param config_file: default: the file named by ``HMS_CACHE_CONFIG``.
    """
    environment = os.environ if environment is None else environment
    layers = _Layers()
    for name, value in (command_line or {}).items():
        if value is not None:
            section, _, key = name.partition(".")
            layers.offer(section, key, value, "command line")
    _offer_environment(layers, environment)
    if config_file is None and environment.get(CONFIG_FILE_VARIABLE):
        config_file = Path(environment[CONFIG_FILE_VARIABLE])
    if config_file is not None:
        _offer_toml(layers, config_file)
    site = {}
    try:
        site = read_site_files(tuple(site_files), environment)
    except ConfigurationError as error:
        layers.problems.extend(error.problems)
    providers = CredentialProviders(site, environment)
    try:
        _offer_credentials(layers, providers)
        unread_providers = providers.unread
    except ConfigurationError as error:
        layers.problems.extend(error.problems)
        unread_providers = ()
    from_site, site_origins = settings_of_site(site)
    for section, keys in from_site.items():
        for key, value in keys.items():
            if providers.text_counts or (section, key) not in _secret_settings():
                layers.offer(section, key, value, site_origins[f"{section}.{key}"])
    _read_secret_files(layers)
    remember([*_secrets(layers, site), *providers.secrets])
    settings = _validated(layers)
    if settings is not None:  # in the form that the driver gets: its error texts may contain it
        remember(secrets_of(settings.database.sqlalchemy_url()))
    site_review = review(site, unread_providers)
    insecure = _insecure(layers, site_review, settings)
    if not (settings is not None and settings.security.accept_insecure):
        layers.problems.extend(f"{found}; or accept it: --set {ACCEPT_SETTING}=true" for found in insecure)
    if layers.problems or settings is None:
        raise ConfigurationError([redacted(problem) for problem in layers.problems])
    return Configuration(
        settings, layers.origins, {name: found.value for name, found in site.items()}, site_review, insecure
    )


def _insecure(layers: _Layers, site: SiteReview, settings: Settings | None) -> tuple[Unhonoured, ...]:
    """Returns the requested protection that this server does not give."""
    found = list(site.insecure)
    if settings is not None and settings.database.verifies_server:
        # Requested with Java's settings; the URL already contains what is needed here.
        found = [one for one in found if ".dbaccess.ssl." not in one.name]
    url = layers.values["database"].get("url")
    if isinstance(url, str):
        origin = layers.origins["database.url"]
        found += [
            Unhonoured(f"{name} in the URL", MASK, origin, remedy) for name, remedy in refused_protection(url).items()
        ]
    return tuple(found)


def _secrets(layers: _Layers, site: Mapping[str, SiteProperty]) -> list[str]:
    """Returns every secret in the sources, even if the configuration is invalid."""
    found = [str(layers.values[section].get(key) or "") for section, key in _secret_settings()]
    for values in layers.values.values():
        found += [secret for value in values.values() if isinstance(value, str) for secret in secrets_of(value)]
    for name, one in site.items():
        found += [one.value] if is_secret_name(name) else secrets_of(one.value)
    found += _secret_texts(layers.values["warehouse"].get("options"))
    return [secret for secret in found if secret]


def _secret_texts(value: Any, name: str = "") -> list[str]:
    """Returns the texts in nested tables whose names say that they are secret, such as options of file systems."""
    if isinstance(value, Mapping):
        return [leaf for key, one in value.items() for leaf in _secret_texts(one, str(key))]
    if not isinstance(value, str) or not is_secret_name(name):
        return []
    parts = [part.partition("=") for part in value.split(";")]  # a connection string of Azure contains its key
    return [value, *(part for key, _, part in parts if part and is_secret_name(key))]


def _offer_environment(layers: _Layers, environment: Mapping[str, str]) -> None:
    for variable in sorted(environment):
        if variable.upper().startswith(ENVIRONMENT_PREFIX):
            section, _, key = variable[len(ENVIRONMENT_PREFIX) :].lower().partition("__")
            layers.offer(section, key, environment[variable], variable)


def _offer_toml(layers: _Layers, path: Path) -> None:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        layers.problems.append(f"{path}: cannot be read: {error.strerror}")
        return
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        layers.problems.append(f"{path}: is not TOML: {error}")
        return
    for section, keys in document.items():
        if not isinstance(keys, dict):
            layers.problems.append(f"{path}: {section} is not in a [section]")
            continue
        for key, value in keys.items():
            layers.offer(section, key, value, str(path))


def _offer_credentials(layers: _Layers, providers: CredentialProviders) -> None:
    """The passwords in Hadoop's credential providers, unless a better source has them, also as a file or a command.
    Only those that are wanted are decrypted: each takes half a second. Raises ConfigurationError."""
    for section, key in _secret_settings():
        others = (key, f"{key}_file", f"{key}_command")
        site_keys = facts_of(section_types()[section].model_fields[key]).site_keys
        if site_keys and not any(layers.values[section].get(one) for one in others):
            found = providers.find(site_keys)
            if found is not None:
                layers.offer(section, key, *found)


def _read_secret_files(layers: _Layers) -> None:
    """Sets each secret to the first line of its ``*_file`` or of the output of its ``*_command``."""
    for section, key in _secret_settings():
        for source_key, read, what in (
            (f"{key}_file", _line_of_file, "first line of {}"),
            (f"{key}_command", _line_of_command, "output of {section}.{source_key}"),
        ):
            source = layers.values[section].get(source_key)
            if not source:
                continue
            name, source_name = f"{section}.{key}", f"{section}.{source_key}"
            if name in layers.origins:
                layers.problems.append(
                    f"{name} ({layers.origins[name]}) and {source_name} ({layers.origins[source_name]}) are both set:"
                    " remove one of them"
                )
                continue
            try:
                line = read(str(source))
            except (OSError, ValueError) as error:
                layers.problems.append(f"{source_name} ({layers.origins[source_name]}): cannot be read: {error}")
                continue
            if not line:
                layers.problems.append(f"{source_name}: {source if read is _line_of_file else 'its output'} is empty")
                continue
            layers.values[section][key] = line
            layers.origins[name] = what.format(source, section=section, source_key=source_key)


def _line_of_file(path: str) -> str:
    """Returns the first line of the file. Raises OSError, UnicodeDecodeError."""
    lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    return lines[0].strip() if lines else ""


def _line_of_command(command: str) -> str:
    """Returns the first line of the command's output. The command is run without a shell. Raises OSError or ValueError,
    whose text does not contain its output."""
    try:
        done = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_COMMAND_TIMEOUT_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise ValueError(f"it ended with status {error.returncode}") from None
    except subprocess.TimeoutExpired:
        raise ValueError(f"it did not end within {_COMMAND_TIMEOUT_S:g} s") from None
    lines = done.stdout.decode("utf-8").splitlines()
    return lines[0].strip() if lines else ""


def _validated(layers: _Layers) -> Settings | None:
    try:
        return Settings.model_validate(layers.values)
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            name = ".".join(str(part) for part in problem["loc"][:2])
            origin = f" ({layers.origins[name]})" if name in layers.origins else ""
            message = problem["msg"].removeprefix("Value error, ")
            within = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"][2:])
            name = f"{name}{within}"
            layers.problems.append(f"{name}{origin}: {message}" if name else message)
        return None
