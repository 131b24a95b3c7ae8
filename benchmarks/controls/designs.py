"""What a simulated control is: scores are drawn as they come where all is well, or where something is broken, and the
control's own rule decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Design:
    """One way in which a control is put to the test.

    ``draw`` draws the scores and gives the verdict; ``sound``: whether it must pass (with 0.999) or fail (with 0.99);
    ``runs``: how often it is drawn, as a share of the number asked for.
    """

    control: str
    what: str
    sound: bool
    draw: Callable[[np.random.Generator], bool]
    runs: float = 1.0
