"""What was asked for in a site file or a URL and is not done here, as values."""

from __future__ import annotations

from hms_cache.values import frozen

#: With which setting protection that was asked for and is not there is accepted.
ACCEPT_SETTING = "security.accept_insecure"


@frozen
class Unhonoured:
    """Something that was asked for and is not done. ``value`` is fit to be shown; ``note`` says why and the remedy."""

    name: str
    value: str
    origin: str
    note: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.name} = {self.value}: {self.note}"


@frozen
class SiteReview:
    """Every metastore key of the site files that no setting stands for, in the order of the files."""

    insecure: tuple[Unhonoured, ...] = ()
    """Protection that the file asks for and this server does not give."""
    ignored: tuple[Unhonoured, ...] = ()
    """Not honoured."""
    harmless: tuple[str, ...] = ()
    """Names of no meaning here, or that ask for what is in force anyway."""
