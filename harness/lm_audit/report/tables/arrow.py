"""Arrow arrays of Python values, built from their buffers.

``pyarrow.array`` imports pandas wherever it is installed, to ask whether the values are its own. That is half of the
time that a short run takes, and every run writes tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

MOST_TEXT = 2**31 - 1
"""Bytes of text that an array of Arrow's type ``string`` can hold."""


def texts(values: Sequence[str | None]) -> Any:
    """A ``pyarrow`` array of type ``string`` (``large_string`` where 2 GiB do not hold it); ``None`` is null.

    Raises ``UnicodeEncodeError`` for a lone surrogate.
    """
    import pyarrow as pa

    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in encoded], out=ends[1:])
    large = bool(ends[-1] > MOST_TEXT)
    offsets = ends if large else ends.astype(np.int32)
    buffers = [_present(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string() if large else pa.string(), len(values), buffers)


def floats(values: Sequence[float | None]) -> Any:
    """A ``pyarrow`` array of type ``double``; ``None`` is null, NaN is NaN."""
    import pyarrow as pa

    return _numbers(values, pa.float64(), np.float64)


def integers(values: Sequence[int | None]) -> Any:
    """A ``pyarrow`` array of type ``int64``; ``None`` is null. ``OverflowError`` beyond 64 bits, ``TypeError``
    for what is no whole number.
    """
    import pyarrow as pa

    return _numbers([value if value is None else index(value) for value in values], pa.int64(), np.int64)


def booleans(values: Sequence[bool | None]) -> Any:
    """A ``pyarrow`` array of type ``bool``; ``None`` is null."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(values), [_present(values), _bits([bool(v) for v in values])])


BUILDERS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "string": texts, "double": floats, "int64": integers, "bool": booleans,
}  # fmt: skip
"""What builds an array, by the name that Arrow gives its type."""


def _numbers(values: Sequence[object], kind: object, dtype: type[np.generic]) -> Any:
    import pyarrow as pa

    held = np.array([0 if value is None else value for value in values], dtype)
    return pa.Array.from_buffers(kind, len(values), [_present(values), pa.py_buffer(held)])


def _present(values: Sequence[object]) -> Any:
    """Arrow's validity bitmap: one bit a value, the lowest first; ``None`` where no value is absent."""
    present = [value is not None for value in values]
    return None if all(present) else _bits(present)


def _bits(values: Sequence[bool]) -> Any:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(np.array(values, bool), bitorder="little"))
