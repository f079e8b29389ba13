"""Arrays in saved documents, checked when they are read."""

from __future__ import annotations

from typing import Any

import numpy as np


def array(
    name: str,
    values: Any,
    shape: tuple[int, ...],
    *,
    missing: float | None = None,
    positive: bool = False,
) -> np.ndarray:
    """Numbers of this shape; null stands for `missing`, where that is given."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape != shape:
        raise ValueError(f"{name} has shape {found.shape}, not {shape}")
    if missing is not None:
        found = np.where(np.isnan(found), missing, found)
    elif not np.all(np.isfinite(found)):
        raise ValueError(f"{name} holds a value that is not finite")
    if positive and np.any(found <= 0):
        raise ValueError(f"{name} must be positive, not {found.tolist()}")
    return found


def listed(values: np.ndarray) -> Any:
    """As a list; null stands for a number that is not finite."""
    entries = np.asarray(values).astype(object)
    entries[~np.isfinite(np.asarray(values, dtype=float))] = None
    return entries.tolist()
