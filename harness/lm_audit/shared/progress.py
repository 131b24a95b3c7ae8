"""The one way in which long work tells how far it is."""

from collections.abc import Callable

OnProgress = Callable[[int, int, int], None]
"""Called with (done, total, tokens read or written): often, from the thread that works, so that it must be quick."""
