"""One face for the two kinds of subjects: of one objective, and of several outcomes."""

from __future__ import annotations

from dataclasses import replace

from optpair.report import findings, outcome_words, outcomes, outcomes_page, page, words
from optpair.report.findings import Findings
from optpair.report.markup import Markup
from optpair.report.outcomes import JointFindings, JointSubject
from optpair.report.subject import Subject
from optpair.report.words import Verdict

AnySubject = Subject | JointSubject
AnyFindings = Findings | JointFindings


def gather(subject: AnySubject) -> AnyFindings | None:
    """Ask everything that a page shows; None if there is no answer yet."""
    if isinstance(subject, JointSubject):
        return outcomes.gather(subject)
    return findings.gather(subject)


def without_answers(subject: AnySubject) -> AnySubject:
    """The same without the model, whose matrices are large; `content` needs the findings alone."""
    if subject.model is None:
        return subject
    return replace(subject, model=replace(subject.model, answers=None))


def content(subject: AnySubject, found: AnyFindings | None) -> Markup:
    """What was found, and the trials."""
    if isinstance(subject, JointSubject):
        assert not isinstance(found, Findings)
        return outcomes_page.content(subject, found)
    assert not isinstance(found, JointFindings)
    return page.content(subject, found)


def verdict(subject: AnySubject, found: AnyFindings | None) -> Verdict:
    """Whether going on is worth it."""
    if isinstance(subject, JointSubject):
        assert not isinstance(found, Findings)
        joint = outcome_words
        return joint.nothing(subject) if found is None else joint.verdict(subject, found)
    assert not isinstance(found, JointFindings)
    return words.nothing(subject) if found is None else words.verdict(subject, found)
