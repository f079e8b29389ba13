"""Streams of random numbers: a seed and a path of counts name every draw."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

MOST_SEED_BITS = 4096


@dataclass(frozen=True)
class Stream:
    """A named source of random numbers: what is drawn depends on the name alone.

    >>> bool(Stream.of(0).child(1).draw().normal() == Stream.of(0).child(1).draw().normal())
    True
    """

    words: tuple[int, ...]
    path: tuple[int, ...] = ()

    @classmethod
    def of(cls, seed: int) -> Stream:
        """The stream of a seed, any non-negative int."""
        digest = hashlib.sha256(str(seed).encode()).digest()
        return cls(tuple(np.frombuffer(digest[:8], dtype=np.uint32).tolist()))

    def child(self, *path: int) -> Stream:
        """The stream further down that path."""
        return Stream(self.words, self.path + path)

    def draw(self) -> np.random.Generator:
        """A generator at the beginning of this stream."""
        sequence = np.random.SeedSequence(self.words, spawn_key=self.path)
        return np.random.Generator(np.random.Philox(sequence))


def check_seed(seed: object) -> int:
    """A seed that can be hashed, or an error that says what is accepted."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"seed must be a non-negative int or None, not {seed!r}")
    number = int(seed)
    if number < 0:
        raise ValueError(f"seed must be a non-negative int, not {number}")
    if number.bit_length() > MOST_SEED_BITS:
        raise ValueError(
            f"seed must be below 2**{MOST_SEED_BITS}, not an int of {number.bit_length()} bits"
        )
    return number
