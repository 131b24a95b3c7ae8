"""Triton's interpreter with newer numpy: arrays of one element are no longer numbers by themselves (Triton 3.6)."""

from __future__ import annotations

import os
from typing import Any


def mend() -> None:
    """Before a kernel runs in the interpreter; does nothing elsewhere."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        return
    from triton.runtime import interpreter

    plain = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        plain(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patched
