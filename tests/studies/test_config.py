"""The study file: what it means, and what is said where it is wrong."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from optpair import Ordinal
from optpair.problem.outcomes import Objective
from optpair.studies.config import Command, Function, StudyError, load
from optpair.studies.samplers import make_sampler

SPACE = """
[space]
lr = { float = [1e-5, 1], log = true }
width = { int = [16, 1024], log = true }
drop = { float = [0, 0.5], step = 0.1 }
act = { categories = ["relu", "tanh"] }
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "tune.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_whole_file(tmp_path: Path) -> None:
    text = """
[study]
name = "digits"
direction = "maximize"
evaluations = 7
seed = 3
noise = 0
storage = "postgresql+psycopg://me@host/db"
sampler = "lattice"
stale_after = 5

[objective]
command = ["python", "train.py", "--lr={lr}", "{width}", "{drop}", "{act}", "{{kept}}"]
timeout = 60

[settings]
sets = 6
"""
    file = load(write(tmp_path, text + SPACE))
    assert (file.name, file.evaluations, file.seed) == ("digits", 7, 3)
    assert file.outcomes == {"value": Objective("maximize", 0.0)}
    assert file.storage == "postgresql+psycopg://me@host/db"
    assert (file.sampler, file.stale_after, file.settings) == ("lattice", 5.0, {"sets": 6})
    assert file.noise == 0
    assert file.folder == tmp_path
    assert isinstance(file.objective, Command)
    assert file.objective.timeout == 60
    assert file.space == {
        "lr": FloatDistribution(1e-5, 1.0, log=True),
        "width": IntDistribution(16, 1024, log=True),
        "drop": FloatDistribution(0.0, 0.5, step=0.1),
        "act": CategoricalDistribution(["relu", "tanh"]),
    }


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    file = load(write(tmp_path, "[objective]\npython = 'mine:f'\n" + SPACE))
    assert file.name == "tune"
    assert file.storage == f"sqlite:///{tmp_path}/tune.db"
    assert (file.evaluations, file.seed, file.sampler) == (50, 0, None)
    assert file.outcomes == {"value": Objective("minimize")}
    assert not file.named
    assert file.noise is None
    assert file.objective == Function("mine", "f")
    assert load(write(tmp_path, SPACE)).objective is None


@pytest.mark.parametrize("url", ["sqlite:///sub/x.db", "journal:///x.log"])
def test_files_are_beside_the_study_file(tmp_path: Path, url: str) -> None:
    scheme, _, name = url.partition(":///")
    file = load(write(tmp_path, f"[study]\nstorage = '{url}'\n" + SPACE))
    assert file.storage == f"{scheme}:///{tmp_path}/{name}"
    absolute = load(write(tmp_path, f"[study]\nstorage = '{scheme}:////else/{name}'\n" + SPACE))
    assert absolute.storage == f"{scheme}:////else/{name}"


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "sqlite:///", "sqlite://"])
def test_a_storage_in_memory_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(StudyError, match="is in memory and would be lost"):
        load(write(tmp_path, f"[study]\nstorage = '{url}'\n" + SPACE))


COMMAND = "[objective]\ncommand = "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[study", "is not TOML"),
        ("[study]\nevaluations = 0" + SPACE, "evaluations must be an int of at least 1, not 0"),
        ("[study]\nevaluation = 9" + SPACE, "unknown key 'evaluation'.*mean 'evaluations'"),
        ("[study]\ndirection = 'up'" + SPACE, "direction must be 'minimize' or 'maximize'"),
        ("[study]\nseed = -1" + SPACE, "seed must be an int of at least 0"),
        ("[study]\nnoise = -1" + SPACE, "noise must be the standard deviation .*, not -1"),
        ("[study]\nnoise = nan" + SPACE, "noise must be the standard deviation .*, not nan"),
        ("[study]\nnoise = inf" + SPACE, "noise must be the standard deviation .*, not inf"),
        ("[study]\nnoise = true" + SPACE, "noise must be the standard deviation .*, not True"),
        ("[study]\nnoise = '0'" + SPACE, "noise must be the standard deviation .*, not '0'"),
        ("[study]\nstale_after = 0" + SPACE, "stale_after must be finite seconds above 0"),
        ("[study]\nstale_after = inf" + SPACE, "stale_after must be finite seconds above 0"),
        (
            "[study]\nstale_after = 1e300" + SPACE,
            "stale_after must be .* at most 1e.09, not 1e.300",
        ),
        (COMMAND + "['a']\ntimeout = 1e300" + SPACE, "timeout must be .* at most 1e.09"),
        ("[study]\nname = " + "[" * 50_000, r"tune.toml is nested too deeply in line 2, 'name'"),
        ("[space]\nx = " + "{ a = " * 50_000, "nested too deeply in line 2, 'x'"),
        ("name = " + "[\n" * 50_000, "tune.toml is nested too deeply$"),
        ("[study]\nname" + ".a" * 1000 + " = 1" + SPACE, "tune.toml: 'study.name.a.*too deeply"),
        ("[study]\nseed = " + "9" * 5000, "too many digits in line 2, 'seed'"),
        ("[study]\nseed = 0x" + "f" * 5000 + SPACE, "'study.seed' must be below 2..1024"),
        ("[space]\nx = { int = [0, 0x" + "f" * 5000 + "] }", "'space.x.int.1' must be below"),
        ("[study]\nevaluations = 1e2" + SPACE, "evaluations must be an int of at least 1"),
        ("[study]\nname = '" + "n" * 501 + "'" + SPACE, "a name of at most 500 characters"),
        ("study = 3" + SPACE, "study must be a table"),
        ("[studdy]" + SPACE, "unknown key 'studdy'"),
        ("", r"\[space\] needs a parameter"),
        ("[space]\nx = 3", "x must be a table"),
        ("[space]\nx = { float = [1] }", "float must be .low, high."),
        ("[space]\nx = { int = [0, 1.5] }", "int must be .low, high., two ints"),
        ("[space]\nx = { float = [2, 1] }", r"\[space\] x: "),
        ("[space]\nx = { float = [0, 1], log = true }", r"\[space\] x: "),
        ("[space]\nx = { float = [0, 1], int = [0, 1] }", "must have one of"),
        ("[space]\nx = { float = [nan, 1] }", "two finite numbers, not .nan, 1."),
        ("[space]\nx = { float = [0, inf] }", "two finite numbers"),
        ("[space]\nx = { float = [0, 1], step = inf }", "step must be a finite number above 0"),
        ("[space]\nx = { int = [0, 9007199254740993] }", r"within ±2\*\*53, to be stored"),
        ("[space]\nx = { int = [0, 9], step = 0.5 }", "x step must be an int, not 0.5"),
        ("[space]\nx = { float = [1, 1] }\ny = { int = [3, 3] }", "nothing to tune"),
        ("[space]\n'' = { float = [0, 1] }", "names of 1 to 500 characters"),
        ("[space]\nx = { float = [0, 1] }\nx = { float = [0, 2] }", "is not TOML"),
        ("[space]\nx = { categories = [1, true] }", "all different"),
        ("[space]\nx = { categories = [0.5, nan] }", "finite numbers"),
        ("[space]\nx = { categories = ['a'] }", "categories must be two"),
        ("[space]\nx = { categories = ['a', 'a'] }", "categories must be two"),
        ("[space]\nx = { categories = ['a', 'b'], log = true }", "neither log nor step"),
        ("[objective]" + SPACE, "either command = "),
        (COMMAND + "'train.py'" + SPACE, "command must be a list of strings"),
        (COMMAND + "['a', '{lrr}']" + SPACE, r"must have only \{name\} of \[space\]"),
        (COMMAND + "['a', '{lr.real}']" + SPACE, r"must have only \{name\} of \[space\]"),
        (COMMAND + "['a', '{lr:.3f}']" + SPACE, r"must have only \{name\} of \[space\]"),
        (COMMAND + "['a', '{lr']" + SPACE, "for a brace"),
        (COMMAND + "['a', '{lr}']" + SPACE, "does not use width, drop, act"),
        (
            COMMAND + "['a', '--o', '{o}']\n[space]\no = { categories = ['-a', 'b'] }",
            "'--o', '{o}' would pass the category '-a'.*write '--o={o}'",
        ),
        ("[objective]\npython = 'f'" + SPACE, "python must be 'module:function'"),
        ("[objective]\npython = 'm:f'\ntimeout = 3" + SPACE, "timeout is for a command"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        load(write(tmp_path, text))


@pytest.mark.parametrize(
    ("arguments", "choices"),
    [
        ("'gcc', '{o}'", "'-O2', '-O3'"),  # the category is the option
        ("'a', '--o={o}'", "'-a', 'b'"),
        ("'a', '--o', '{o}'", "'-1', '-.5'"),  # argparse takes them for numbers
        ("'a', '--o', '{o}'", "-1e-5, 2"),
    ],
)
def test_dashes_that_do_no_harm(tmp_path: Path, arguments: str, choices: str) -> None:
    space = f"[space]\no = {{ categories = [{choices}] }}"
    load(write(tmp_path, f"{COMMAND}[{arguments}]\n{space}"))


def test_a_mark_of_byte_order_is_no_mistake(tmp_path: Path) -> None:
    assert load(write(tmp_path, "\ufeff" + SPACE)).name == "tune"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"none\.toml cannot be read: No such file"):
        load(tmp_path / "none.toml")


def test_ordinals_and_digits(tmp_path: Path) -> None:
    lines = "batch = { ordinal = [64, 16, 32] }\ndose = { float = [0, 1], digits = 2 }\n"
    (tmp_path / "s.toml").write_text(f"[space]\n{lines}")
    found = load(tmp_path / "s.toml")
    assert found.space.parameters["batch"] == Ordinal([16, 32, 64])
    assert found.space == {
        "batch": CategoricalDistribution([16, 32, 64]),
        "dose": FloatDistribution(0.0, 1.0, step=0.01),
    }
    sampler = make_sampler(found)
    study = optuna.create_study(sampler=sampler)
    trial = study.ask(dict(found.space))
    assert trial.params["batch"] in (16, 32, 64)
    assert round(trial.params["dose"], 2) == trial.params["dose"]


def test_significant_figures(tmp_path: Path) -> None:
    """Optuna stores a continuous range; what is suggested has the digits."""
    found = load(write(tmp_path, "[space]\nlr = { float = [1e-4, 1], log = true, digits = 1 }\n"))
    assert found.space == {"lr": FloatDistribution(1e-4, 1.0, log=True)}
    study = optuna.create_study(sampler=make_sampler(found))
    values = [study.ask(dict(found.space)).params["lr"] for _ in range(6)]
    assert values == [float(f"{value:.0e}") for value in values]


def test_guesses(tmp_path: Path) -> None:
    lines = "lr = { float = [1e-4, 1], log = true, guess = 0.01, sure = 0.9 }\n"
    lines += 'act = { categories = ["a", "b"], guess = "b" }\n'
    (tmp_path / "s.toml").write_text(f"[space]\n{lines}")
    found = load(tmp_path / "s.toml")
    guesses = {name: (p.guess, p.sure) for name, p in found.space.parameters.items()}
    assert guesses == {"lr": (0.01, 0.9), "act": ("b", 0.7)}
    trial = optuna.create_study(sampler=make_sampler(found)).ask(dict(found.space))
    assert trial.params == {"lr": pytest.approx(0.01), "act": "b"}
    (tmp_path / "s.toml").write_text("[space]\nlr = { float = [0, 1], guess = 2 }\n")
    with pytest.raises(StudyError, match=r"Float's guess must be from 0.0 to 1.0, not 2"):
        load(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("float = [0, 1], sure = 0.5", "sure = 0.5 needs a guess to be sure of"),
        ("ordinal = [1]", r"ordinal must be two or more finite numbers, all different, not \[1\]"),
        ("ordinal = [1, 1.0]", "all different"),
        ("ordinal = ['a', 'b']", "two or more finite numbers"),
        ("ordinal = [true, 2]", "two or more finite numbers"),
        ("ordinal = [1, 2], log = true", "ordinal has neither log nor step"),
        ("ordinal = [1, 2], int = [1, 2]", "must have one of float"),
        ("int = [1, 9], digits = 2", "digits is for float"),
        ("float = [0, 1], digits = 1.5", "digits must be an int from 0 to 12"),
        ("float = [0.125, 1], digits = 2", "low has more than 2 decimals"),
        ("float = [0, 1], digits = 2, step = 0.1", "step and digits do not go together"),
    ],
)
def test_what_ordinals_and_digits_cannot_be(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "s.toml").write_text(f"[space]\nx = {{ {line} }}\n")
    with pytest.raises(StudyError, match=message):
        load(tmp_path / "s.toml")


def test_limits(tmp_path: Path) -> None:
    text = '[study]\nwhere = ["low <= high", "0.2 <= low + high"]\n[space]\n'
    space = "low = { float = [0, 1] }\nhigh = { float = [0, 1], step = 0.1 }\n"
    found = load(write(tmp_path, text + space))
    assert found.space.where == ("low <= high", "0.2 <= low + high")
    assert load(write(tmp_path, SPACE)).space.where == ()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ('"drop <= 1"', "where must be limits"),
        ("[1]", "where must be limits"),
        ('["dorp <= 0.2"]', r"tune.toml: \[study\] where .* did you mean 'drop'\?"),
        ('["lr <= 0.2"]', "log scale"),
        ('["drop >= 0.6"]', "leaves no legal point"),
    ],
)
def test_limits_that_are_refused(where: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=message):
        load(write(tmp_path, f"[study]\nwhere = {where}\n{SPACE}"))


def test_a_url_and_a_saved_run_are_no_study_files(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"URL is no study file.* optpair report and") as refused:
        load("postgresql://user:secret@host/db")
    assert "secret" not in str(refused.value)
    path = tmp_path / "run.json"
    path.write_text('{"version": 3}', encoding="utf-8")
    with pytest.raises(StudyError, match=r"is JSON, and no study file.* optpair report and"):
        load(path)


def test_a_database_is_no_study_file(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    path.write_bytes(b"SQLite format 3\0\xfb")
    with pytest.raises(StudyError, match=r"is not text.* optpair report and optpair watch also"):
        load(path)
