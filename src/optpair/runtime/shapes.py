"""Shapes in signatures: `Float[np.ndarray, "M n"]` is an array of floats with axes M and n.

Type checkers read them, and so do tests, which import `jaxtyping` first to check them on every
call. Everybody else needs neither its meaning nor its import.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool, Float, Int, Num
else:

    class _Unread:
        """A shape that nobody reads."""

        def __class_getitem__(cls, shape: tuple[Any, str]) -> Any:
            return Any

    Bool = Float = Int = Num = _Unread

__all__ = ["Bool", "Float", "Int", "Num"]
