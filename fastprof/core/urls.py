"""URLs of remote objects.  core/remote.py opens them."""

from fastprof.core._typing import Any

CLOUDS = ("s3", "gs", "az")
_SCHEMES = (*CLOUDS, "https", "http")
_GO = "/debug/pprof/"  # a profile that Go's net/http/pprof takes when it is requested
_GO_PARAMETERS = {"seconds", "debug", "gc"}


class Remote:
    """A remote object that is open for reading, from its beginning or by ranges."""

    size: int
    identity: tuple[Any, ...]  # changes when the object does


def is_url(path: object) -> bool:
    """Whether this names an object that is read and written over the network."""
    return isinstance(path, str) and "://" in path and path.partition("://")[0] in _SCHEMES


def shown(path: str) -> str:
    """A path as shown in messages, logs and outputs: URLs without passwords and signatures.

    https://me:secret@host/a.prof?X-Amz-Signature=1f  is  https://host/a.prof
    """
    if not is_url(path):
        return path
    scheme, _, rest = path.partition("://")
    if scheme not in CLOUDS:  # object names elsewhere may contain these characters
        rest = rest.partition("#")[0].partition("?")[0]
    host, slash, name = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{name}"


def is_taken_anew(url: str) -> bool:
    """Whether each request takes another profile, also one that asks for its length alone."""
    return is_url(url) and url.partition("://")[0] not in CLOUDS and _GO in url


def is_recordable(url: str) -> bool:
    """Whether a URL may be written into files: it has neither a password nor a query that might be a signature."""
    address, _, query = url.partition("?")
    parameters = [one.partition("=") for one in query.split("&")]
    is_go = is_taken_anew(address) and all(key in _GO_PARAMETERS and value.isdecimal() for key, _, value in parameters)
    return shown(url) == (address if is_go else url)


def has_listings(url: str) -> bool:
    """Whether this URL stands for a folder whose objects can be listed."""
    return is_url(url) and url.endswith("/") and url.partition("://")[0] in CLOUDS


def bare(url: str) -> str:
    """A URL of https or http without user, password and fragment."""
    scheme, _, rest = url.partition("#")[0].partition("://")
    host, slash, name = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{name}"
