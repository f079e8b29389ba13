"""Prose of the page of the benchmarks: its head, and why results are as they are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

HEAD = """# The paper's experiments, reproduced

Every experiment of the paper, run by this library and compared with what the paper says. The
numbers, and the words *agrees*, *disagrees* and *undecided*, are written by `optpair bench page`
from the rows in `bench/results/`, the figures by `optpair bench figures all`; `make figures` does
both. Only the text here and the paragraphs that begin with *Why* are written by hand. `optpair
bench` is a separate distribution: `pip install ./bench` in a clone of the repository.

- **What holds.** With much noise, JES keeps improving for the whole run. It has the lowest simple
  regret of the paper's four methods on both Hartmann functions (it alone has γ, which helps), and
  takes about as long as MES. PES's recommendations are far better than its trials. More optimal
  pairs help most in many dimensions.
- **What does not.** JES does not end far ahead of MES and PES on GP samples. MES, with the lower
  bound on f* that its authors' code has, keeps up with it; PES, which met no numerical trouble
  here, ends ahead of it in two and four dimensions, in 1.5 times the time.
- **What followed.** PES knows something that JES does not: that f is flat at x*. `jes-peak`, JES
  with that knowledge, is the library's default. On average over all tasks, with hyperparameters
  learnt, its answers are closer to the optimum than those of the other libraries. The difference is
  significant for Optuna, but not for BoTorch's log noisy EI, which is given the hyperparameters of
  GP samples.

The rows were made by an earlier, compiled engine. Today's, in plain NumPy, computes the same
quantities: a test compares every acquisition function with numbers from the earlier one. On 25 GP
samples in two dimensions, with the same seeds, today's log10 inference regret differs by +0.10 ±
0.10 over JES, `jes-peak`, MES, PES and EI (`optpair bench compare bench/results/gp.jsonl
bench/results/engines-gp.jsonl`), and on nine functions, six seeds each, by +0.05 ± 0.07
(`tuning-first.jsonl` and `tuning-numpy.jsonl`).
"""

RULES = """## How they were run

This holds for all experiments, unless their pages say otherwise:

- Tasks are maximised. Every method of a repetition begins with the same D + 1 uniform points and
  meets the same noise; budgets count the evaluations after them.
- Regrets are noiseless. *Inference* regret is at the recommendation, the argmax of the averaged
  posterior mean; *simple* regret is at the best queried point. Optuna and the controls recommend
  their best observed point, as their users would; BoTorch the argmax of its posterior mean.
- JES, MES, PES and EI run in the same engine, with the same model, sample paths and maximiser.
  Baselines follow their own papers and are given their best form: EI's incumbent is the best
  posterior mean, MES uses noiseless variances. `optpair` is what users get: every default,
  hyperparameters marginalised even where the others know them.
- If hyperparameters are known, Optuna still fits its own: it cannot be given any.
- A claim is judged by paired differences, on the same seeds, of log10 regret (or of accuracy, if
  the figure shows accuracy). It *agrees* or *disagrees* if the difference is at least two standard
  errors from zero (more if seeds are few, by Student's t: 2.3 for ten, 4.5 for three, 14 for two),
  and is *undecided* otherwise. “Equal” is within a factor of two in regret, or 0.005 in accuracy;
  “no worse” is below that, and “far”, “much” and “very” are beyond it. A difference is the first
  method's number minus the second's: if the first is better, it is negative, or positive for
  accuracies.
- Figures show means of log10 regret, floored at 1e-8 (on tables, where it can be zero, at a
  thousandth of the noise's standard deviation), with a band of standard errors. Medians are dotted,
  because a few lucky runs dominate a mean of logarithms. Seconds per ask are from a busy machine;
  `optpair bench speed` measures speed.

The command at the top of its page runs an experiment, or continues it; `--paper` runs as many
repetitions as the paper has, and `--plan` says how long that takes.
"""

_ABOUT = {
    "functions": "What users get, `optpair`, beside EI in the same engine and other libraries.",
    "live": "The noise is real, and the answer is judged by ten seeds of its own.",
    "pictures": """The paper says: JES finds all attractive regions and looks densely around the
        optimum; MES finds them too, but looks at poor regions most of the four; PES circles the
        optimum and passes over two local ones; EI misses two.""",
}
_WHY = {
    "gp": """MES as described in its paper asks for the best known place again and again, as its
        gain ignores noise. Without the lower bound on f* that its authors' code has, it ends 1.6
        behind JES in 2, 4 and 12-D and 0.95 in 6-D (`bench/results/mes-unbounded.jsonl`), which is
        what the paper reports; with it, as here, it keeps up with JES. EI, whose incumbent is the
        best posterior mean, also repeats its incumbent: what noise leaves uncertain there looks
        like an improvement. Noisy EI, which knows better, is as good as JES. PES is ahead of our
        JES because it knows one fact about x* that JES's condition leaves out: the slope there is
        zero. A look at the flanks of a peak then tells where its top is, and PES spends its trials
        there, which is why its simple regret is so much larger. `jes-peak`, JES with that
        knowledge, makes up most of the difference. BoTorch's JES, an independent implementation,
        ends where ours does in 2-D: 0.08 ± 0.43 above in inference regret and 0.07 ± 0.24 below in
        simple regret, on ten seeds. We do not know why the paper sees PES behind. We do know that
        its code differs from its text (the conditional mean leaves out f*, the local refinement
        returns its start, and these tasks run with γ = 0.1), and that the authors report numerical
        trouble with PES on Branin; our PES met none on these tasks.""",
    "synthetic": """Hartmann-6 has a second peak, 0.12 below the highest (−0.9 in log10), and a
        search that finds it first tends to stay on it: 6 of 20 runs of JES end there, 9 of MES and
        of EI, 4 of 10 of PES and one of ten of the default. On eight other seeds, with an earlier
        engine, neither the kernel, nor the updates of hyperparameters, nor compressed values, nor γ
        was the only cause (`bench/results/tuning-hartmann6.jsonl`). JES has γ = 0.1 here and the
        others have none, as in the paper; γ alone lowers its simple regret on Hartmann-3 by as much
        as it is ahead of MES there (see `gamma`). On Branin the best of many trials near an optimum
        is closer to it than a single prediction. MES's inference regret does not get worse, because
        it has its lower bound on f*.""",
    "misspecified": """Michalewicz has many narrow ridges, of which 500 trials find few: every
        method ends some 6 below an optimum of 9.7, with small differences. On Levy, γ helps the
        best trial most if a method looks around the optimum and not at it, as PES does; the
        recommendations of PES are as good without. Those of JES are worse with it: on so rough a
        function the top of a smooth model's mean jumps about, in four of ten runs by more than 10
        in regret from one look to the next in the second half, whatever good trials there are.""",
    "live": """This is an easy task: the answers after 60 random trials are as good as any
        method's. It shows real noise, not which method is better.""",
    "spared": """The rows are from an engine in which chains of hyperparameters were not yet
        followed as they are now; both methods used it.""",
    "gp-noisy": """As on the tasks with little noise: MES has its lower bound on f*, and PES knows
        that the slope at x* is zero.""",
    "noise-levels": """MES and PES behave as in `gp` and `gp-noisy`. A seed has the same function
        and the same draws of noise at every level, so differences between levels are paired,
        too.""",
    "mlp": """These are tables with ten levels per parameter, and the noise of a training's seed.
        After 80 trials most methods have seen one of the best rows, and differ by a few thousandths
        of accuracy, a fraction of the noise. Only EI is behind by a hundredth, on two of them.""",
    "pictures": """One function and one run each: a picture, not a test. JES and PES behave as in
        the paper: one looks at the optimum, the other around it. EI stayed at the second-highest
        peak.""",
    "runtime": """All methods share one engine here, batched over sets and pairs, with the same
        screening, so only their own arithmetic differs. PES's expectation propagation is batched
        like the rest: it takes about twice the time of JES, whereas the authors' takes twelve to
        forty times. MES takes little more than JES: it samples no paths, and fits its Gumbel
        distribution instead.""",
    "approximation": """The gain is the entropy that is lost when the distribution of a value is cut
        off at f*. Moment matching replaces the cut distribution by a normal one of the same
        variance. As a normal has the most entropy of all distributions, the gain is never
        overestimated; and noise, which makes the sum more normal, makes the approximation
        better.""",
}


def _lines(texts: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: " ".join(text.split()) for name, text in texts.items()})


ABOUT = _lines(_ABOUT)
"""What is shown, by experiment, where its title does not say it."""
WHY = _lines(_WHY)
"""Why results are as they are, by experiment; shown where it has results."""

RUNTIME = """# Time per iteration

Experiment `runtime`. Seconds per iteration at 100 observations: ten given sets × ten pairs, 10,000
raw candidates, one gradient climb. In the paper: Table 1.

```sh
optpair bench speed --paper --d 2 --d 4 --d 6 --method jes --method mes --method pes --method ei
```
"""

APPROXIMATION = """# How much of the truncation's gain moment matching sees

Experiment `approximation`. In the paper: App. “Approximation quality”.

```sh
optpair bench figures approximation
```
"""
ANSWERS = """\
# Functions that others wrote, within users' budgets

Experiment `answers`: [what is measured, and how](../answers.md). Not in the paper.

```sh
optpair bench run answers
optpair bench arena bench/results/answers.jsonl
```

"""
