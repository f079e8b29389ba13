"""Every trial of a study, for other programs: as JSON, and as a table."""

from __future__ import annotations

from typing import Any

from optpair.problem.problem import VALUE
from optpair.studies.config import StudyFile
from optpair.studies.lifecycle import row, trials
from optpair.studies.storage import open_study
from optpair.trials.table import ASKED, csv_text


def rows(file: StudyFile) -> list[dict[str, Any]]:
    """Every trial."""
    return [row(trial, file) for trial in trials(open_study(file, make=False))]


def as_csv(file: StudyFile, found: list[dict[str, Any]]) -> str:
    """Rows as CSV, one column per outcome and parameter.

    Parameters are what was really run; where that differs, `asked …` is what was asked for.
    No text is a spreadsheet's formula.
    """
    asked = [name for name in file.space if any(name in own["actual"] for own in found)]
    notes = list(dict.fromkeys(name for own in found for name in own["notes"]))
    more = ["continues"] if file.space.fidelities else []
    more += ["started", "ended", "worker", "output"]
    heads = ["trial", "state", *file.outcomes]
    noises = [f"{name} noise_var" for name in file.outcomes] if file.named else ["noise_var"]
    cells = []
    for own in found:
        values, noise = own.get("outcomes", {VALUE: own.get("value")}), own["noise_var"]
        several = own["replicates"] or {}
        values = values | (several if file.named else {VALUE: several or values[VALUE]})
        variances = (noise or {}) if file.named else {VALUE: noise}
        cells.append(
            [
                *(own["trial"], own["state"]),
                *(values.get(name) for name in file.outcomes),
                *(variances.get(name) for name in file.outcomes),
                own["cost"],
                *({**own["params"], **own["actual"]}.get(name) for name in file.space),
                *(own["params"].get(name) for name in asked),
                *(own[key] for key in more),
                *(own["notes"].get(name) for name in notes),
            ]
        )
    return csv_text(
        [*heads, *noises, "cost", *file.space, *(f"{ASKED}{n}" for n in asked), *more, *notes],
        cells,
    )
