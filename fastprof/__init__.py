"""samtools for profiles: any profile format into any other, streaming."""

from fastprof._version import __version__

__all__ = ["__version__"]
