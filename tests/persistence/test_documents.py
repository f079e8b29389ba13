"""Saved optimisers: what was saved, and files that are not trusted."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpair import Optimizer, Settings
from optpair.engine.model import OutcomeMemory
from optpair.gp.inference.chains import Chains
from optpair.gp.priors import PAPER, Gamma, Prior
from optpair.trials.transform import Scaling
from shell_cases import CHEAP, SPACE, cheap, filled, jes, point


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """What a marginal optimiser with every kind of trial saves."""
    optimizer = filled(jes(), [1.0, 2.0, 0.5])
    optimizer.tell(point(3), 1.5, noise_var=0.1)
    optimizer.ask()
    optimizer.tell(point(4), failed=True)
    made: dict[str, Any] = json.loads(
        json.dumps({"format": "optpair", "version": 3, **optimizer._to_json()})
    )
    assert made["memory"]["value"]["state"]["position"] is not None
    return made


def load(tmp_path: Path, content: object) -> Optimizer:
    path = tmp_path / "run.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return Optimizer.load(path)


def test_the_document_itself_loads(tmp_path: Path, document: dict[str, Any]) -> None:
    again = load(tmp_path, document)
    assert {"format": "optpair", "version": 3, **again._to_json()} == document


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" ",
        b"\x00\x01\x02",
        b"\xff\xfe\x80",
        b"PK\x03\x04 a zip",
        b"{",
        b"not json",
        b"[" * 100_000,
        b'{"format": "optpair", "version": 3, "seed": ' + b"9" * 5000 + b"}",
        b'{"format": "optpair", "version": 3, "seed": NaN}',
        b'{"format": "optpair", "version": 3, "seed": 1e999}',
    ],
    ids=range(11),
)
def test_what_is_no_json(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ValueError, match=r"run\.json is damaged, or no saved optimizer: "):
        load(tmp_path, content)


@pytest.mark.parametrize("content", [[], {}, 3, None, "optpair", {"format": "other"}, [1, 2]])
def test_foreign_json(tmp_path: Path, content: object) -> None:
    with pytest.raises(ValueError, match=r"run\.json is JSON, but no saved optimizer"):
        load(tmp_path, json.dumps(content))


@pytest.mark.parametrize("version", [0, 2, 4, "3", None])
def test_other_versions(tmp_path: Path, document: dict[str, Any], version: object) -> None:
    with pytest.raises(
        ValueError,
        match=rf"run\.json has version {version!r} of .*; this release reads version 3: load it",
    ):
        load(tmp_path, {**document, "version": version})


def test_truncation_anywhere(tmp_path: Path, document: dict[str, Any]) -> None:
    text = json.dumps(document)
    for cut in np.linspace(0, len(text) - 1, 50).astype(int):
        with pytest.raises(ValueError, match=r"run\.json is damaged"):
            load(tmp_path, text[:cut])


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        Optimizer.load(tmp_path / "nowhere.json")


def state(document: dict[str, Any]) -> dict[str, Any]:
    """What is saved of the chains."""
    found: dict[str, Any] = document["memory"]["value"]["state"]
    return found


Edit = Callable[[dict[str, Any]], object]
EDITS: dict[str, Edit] = {
    "value is NaN": lambda d: d["trials"][0]["outcomes"]["value"].update(value=float("nan")),
    "value is text": lambda d: d["trials"][0]["outcomes"]["value"].update(value="1.0"),
    "value is missing": lambda d: d["trials"][0]["outcomes"]["value"].pop("value"),
    "value of a pending trial": lambda d: d["trials"][4].update(
        outcomes=d["trials"][0]["outcomes"]
    ),
    "value of a failed trial": lambda d: d["trials"][5].update(outcomes=d["trials"][0]["outcomes"]),
    "negative noise": lambda d: d["trials"][0]["outcomes"]["value"].update(noise_var=-1.0),
    "out of range": lambda d: d["trials"][0]["params"].update(x=2.0),
    "unknown parameter": lambda d: d["trials"][0]["params"].update(z=2.0),
    "unknown category": lambda d: d["trials"][0]["params"].update(c="z"),
    "duplicated id": lambda d: d["trials"][1].update(id=0),
    "negative id": lambda d: d["trials"][0].update(id=-1),
    "bool id": lambda d: d["trials"][1].update(id=True),
    "unknown state": lambda d: d["trials"][0].update(state="lost"),
    "next is taken": lambda d: d.update(next=2),
    "negative count": lambda d: d.update(asked=-1),
    "huge count": lambda d: d.update(asked=10**20),
    "negative seed": lambda d: d.update(seed=-1),
    "no space": lambda d: d["problem"].pop("space"),
    "another space": lambda d: d["problem"]["space"]["parameters"].pop(),
    "direction": lambda d: d["problem"]["outcomes"][0].update(direction="up"),
    "acquisition": lambda d: d.update(acquisition=["jes"]),
    "hyperparameters": lambda d: d.update(hyperparameters="best"),
    "unknown setting": lambda d: d["settings"].update(colour=1),
    "no sets": lambda d: d["settings"].update(sets=0),
    "other sets": lambda d: d["settings"].update(sets=4),
    "unknown density": lambda d: d["settings"]["prior"]["noise"].update(density="Cauchy"),
    "text in a prior": lambda d: d["settings"]["prior"]["noise"].update(scale="1"),
    "mode without chains": lambda d: d.update(hyperparameters="map"),
    "no outcomes": lambda d: d["problem"].update(outcomes=[]),
    "a value of another outcome": lambda d: d["trials"][0].update(outcomes={"other": 1.0}),
    "a memory of another outcome": lambda d: d.update(memory={"other": d["memory"]["value"]}),
    "more told than there are": lambda d: d["memory"]["value"].update(told=99),
    "no scaling": lambda d: d["memory"]["value"].update(scaling=None),
    "zero scale": lambda d: d["memory"]["value"]["scaling"].update(scale=0.0),
    "no chains": lambda d: d["memory"]["value"].update(state=None),
    "shape of position": lambda d: state(d)["position"].pop(),
    "ragged position": lambda d: state(d)["position"][0].pop(),
    "shape of recent": lambda d: state(d)["recent"][0].pop(),
    "negative step size": lambda d: state(d).update(step_size=-1.0),
    "negative age": lambda d: state(d)["age"].__setitem__(0, -1),
    "null in a position": lambda d: state(d)["position"][0].__setitem__(0, None),
    "a missing array": lambda d: state(d).pop("inverse_mass"),
}


@pytest.mark.parametrize("name", EDITS)
def test_edited_by_hand(tmp_path: Path, document: dict[str, Any], name: str) -> None:
    edited = copy.deepcopy(document)
    EDITS[name](edited)
    with pytest.raises(ValueError, match=r"run\.json is damaged.*: ..."):
        load(tmp_path, edited)


def spots(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document, as a container and a key; of long lists, the first two."""
    keys = list(node) if isinstance(node, dict) else range(min(len(node), 2))
    for key in keys:
        yield node, key
        if isinstance(node[key], dict | list):
            yield from spots(node[key])


def test_no_edit_gets_another_error(tmp_path: Path, document: dict[str, Any]) -> None:
    """Each place of the document replaced by each odd thing: loads, or a ValueError."""
    work, tried = copy.deepcopy(document), 0
    for node, key in list(spots(work)):
        kept = node[key]
        for odd in (None, -1, 0.5, True, 10**400, "x", [], {}, [[None]], {"a": 1}):
            node[key] = odd
            tried += 1
            try:
                load(tmp_path, work)
            except ValueError as error:
                assert "run.json" in str(error)  # noqa: PT017
        node[key] = kept
    assert work == document
    assert tried > 1000


def test_priors_and_known_hyperparameters(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    settings = Settings(prior=Prior(lengthscale=Gamma(2.0, 3.0), mean_scale=0.1))
    for given in (settings, Settings(prior=PAPER)):
        Optimizer(SPACE, seed=2**200, settings=given).save(path)
        again = Optimizer.load(path)
        assert again._session.settings == given
        assert again.seed == 2**200
    cheap().save(path)
    np.testing.assert_array_equal(
        Optimizer.load(path)._session.hyperparameters.lengthscale,  # type: ignore[union-attr]
        CHEAP["hyperparameters"].lengthscale,
    )


def test_a_density_that_cannot_be_saved_says_so(tmp_path: Path) -> None:
    class Mine(Gamma):
        pass

    optimizer = Optimizer(SPACE, settings=Settings(prior=Prior(noise=Mine(1.0, 1.0))))
    with pytest.raises(TypeError, match="cannot be saved, only LogNormal, Gamma, LogUniform"):
        optimizer.save(tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []


def test_chains_that_the_data_rule_out(tmp_path: Path, document: dict[str, Any]) -> None:
    edited = copy.deepcopy(document)
    state(edited)["log_density"][1] = None
    session = load(tmp_path, edited)._session
    chains = session.memory["value"].state
    assert isinstance(chains, Chains)
    assert chains.log_density[1] == -np.inf
    assert session.to_json()["value"]["state"]["log_density"][1] is None


def test_a_broken_memory_does_not_cost_the_history(tmp_path: Path) -> None:
    optimizer = filled(jes(), [1.0, 2.0, 0.5])
    optimizer.ask()
    chains = optimizer._session.memory["value"].state
    broken = replace(chains, position=np.full_like(chains.position, np.nan))
    optimizer._session.memory = {"value": OutcomeMemory(3, Scaling(), broken)}
    optimizer.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again.trials == optimizer.trials
    assert again._session.memory == {}
