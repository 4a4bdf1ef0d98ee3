"""Hubs, where parties publish and everyone reads."""

from __future__ import annotations

from potluck import _potluck
from potluck._arrow import Path
from potluck._potluck import Hub

__all__ = ["connect"]


def connect(
    url: str,
    *,
    ca_certificate: Path | None = None,
    insecure_http: bool = False,
    retry_for: float = 60.0,
) -> Hub:
    """A hub, from which anyone takes public datasets: ``potluck.connect(url).study(id).dataset()``.

    A hub is not trusted: studies, event logs and datasets are verified before they are handed on. Nothing is sent before
    something is asked for. What fails raises `RemoteError`; what does not verify, `IntegrityError`.

    Parameters
    ----------
    url
        The hub's address, or that of a study's page; then ``.study()`` needs no id.
    ca_certificate
        Certificate of the authority to trust, in PEM form, instead of the well-known ones.
    insecure_http
        Talk to a hub on another machine without encryption.
    retry_for
        How many seconds to go on trying where a connection fails.
    """
    return _potluck.connect(url, ca_certificate=ca_certificate, insecure_http=insecure_http, retry_for=retry_for)
