"""Subjects of a report with the names of the user's objects."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from optpair.integrations.sklearn.space import NumberedSpace
from optpair.report import JointSubject, Subject

About = TypeVar("About", Subject, JointSubject)


def named_subject(subject: About, numbered: NumberedSpace) -> About:
    """What a page is about, with words for objects in place of their numbers."""
    labels = numbered.labels
    rows = tuple(
        replace(row, params={n: labels[n][v] if n in labels else v for n, v in row.params.items()})
        for row in subject.rows
    )
    assert subject.model is not None
    model = replace(subject.model, choices=labels, single=numbered.single)
    return replace(subject, rows=rows, model=model)
