"""Prose of the page of the benchmarks: its head, and why results are as they are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

HEAD = """# The paper's experiments, reproduced

Every experiment of the paper, run by this library and put beside what the paper says. The numbers,
and the words *agrees*, *disagrees* and *undecided*, are written by `optpair bench page` from the
rows in `bench/results/`, the figures by `optpair bench figures all`; `make figures` does both. Only
what follows here and the paragraphs that begin with *Why* are written by hand. `optpair bench` is a
distribution of its own: `pip install ./bench` in a clone of the repository.

- **What holds.** JES goes on improving under much noise for the whole run, ends with the least
  simple regret of the paper's four methods on both Hartmann functions (it alone has γ, which
  helps), and takes about as long as MES. PES's recommendations are far better than its trials.
  More optimal pairs help most in many dimensions.
- **What does not.** JES does not end far ahead of MES and PES on GP samples. MES, with the lower
  bound on f* that its authors' code has, keeps up with it; PES, which met no numerical trouble
  here, ends ahead of it in two and four dimensions, in 1.5 times the time.
- **What came of it.** What PES knows and JES does not is that f is flat at x*. `jes-peak`, JES that
  knows it too, is the library's default. On average over all tasks its answers, hyperparameters
  learnt, are closer to the optimum than those of the other libraries: surely than Optuna's, and
  not surely than those of BoTorch's log noisy EI, which is told the hyperparameters of GP samples.

The rows were made by an earlier engine, which was compiled. Today's, in plain NumPy, computes
the same quantities: a test compares every acquisition function with numbers that the other wrote
down. Run again on 25 GP samples in two dimensions, on equal seeds, its log10 inference regret
differs from theirs by +0.10 ± 0.10 over JES, `jes-peak`, MES, PES and EI (`optpair bench compare
bench/results/gp.jsonl bench/results/engines-gp.jsonl`), and on nine functions, six seeds each, by
+0.05 ± 0.07 (`tuning-first.jsonl` and `tuning-numpy.jsonl`).
"""

RULES = """## How they were run

What holds for all of them, unless its page says otherwise:

- Tasks are maximised. Every method of a repetition begins with the same D + 1 uniform points and
  meets the same noise; budgets count the evaluations after them.
- Regrets are noiseless. *Inference* regret is at the recommendation, the argmax of the averaged
  posterior mean; *simple* regret is at the best queried point. Optuna and the controls recommend
  their best observed point, as their users would take it; BoTorch the argmax of its posterior mean.
- JES, MES, PES and EI run in the same engine, with the same model, sample paths and maximiser.
  Baselines follow their own papers and are given their best form: EI's incumbent is the best
  posterior mean, MES uses noiseless variances. `optpair` is what users get: every default,
  hyperparameters marginalised even where the others know them.
- Where hyperparameters are known, Optuna fits its own all the same: it cannot be told.
- A claim is settled on paired differences, on equal seeds, of log10 regret (of accuracy where the
  figure shows accuracy). It *agrees* or *disagrees* where the difference is two standard errors to
  one side of zero (more where seeds are few, by Student's t: 2.3 for ten, 4.5 for three, 14 for
  two), and is *undecided* otherwise. “Equal” is within a factor of two in regret, or 0.005 of
  accuracy; “no worse” is below that, and “far”, “much” and “very” are beyond it. A difference is
  the first method's number minus the second's: negative where the first is better or, of
  accuracies, positive.
- Figures show means of log10 regret, floored at 1e-8 (on tables, where it can be zero, at a
  thousandth of the noise's standard deviation), with a band of standard errors, and medians
  dotted: a few lucky runs dominate a mean of logarithms. Seconds per ask are those of a busy
  machine: `optpair bench speed` measures speed.

An experiment is run, or continued, by the command at the head of its page; `--paper` asks for as
many repetitions as the paper has, `--plan` says how long that takes.
"""

_ABOUT = {
    "functions": "What users get, `optpair`, beside EI in the same engine and other libraries.",
    "live": "Noise as it comes, and the answer judged by ten seeds of its own.",
    "pictures": """The paper says: JES finds all attractive regions and looks densely around the
        optimum; MES finds them too, but looks at poor regions most of the four; PES circles the
        optimum and passes over two local ones; EI misses two.""",
}
_WHY = {
    "gp": """MES as its paper's text has it asks for the best known place again and again, as its
        gain counts no noise. Without the lower bound on f* that its authors' code has, it ends 1.6
        behind JES in 2, 4 and 12-D and 0.95 in 6-D (`bench/results/mes-unbounded.jsonl`), which is
        what the paper reports; with it, as here, it keeps up with JES. EI, whose incumbent is the
        best posterior mean, repeats its incumbent too: what noise leaves open there looks like an
        improvement, and noisy EI, which knows better, is as good as JES. PES is ahead of our
        JES because it knows one thing of x* that JES's condition leaves out: that the slope there
        is zero. A look at the flanks of a peak then says where its top is, and PES spends its
        trials there, which is why its simple regret is so much larger. `jes-peak`, JES with that
        knowledge, makes up for most of the difference. BoTorch's JES, which others have written,
        ends where ours does in 2-D: 0.08 ± 0.43 above in inference regret and 0.07 ± 0.24 below in
        simple regret, on ten seeds. Why the paper sees PES behind we do not
        know; this much is known of its code: it differs from the text (the conditional mean leaves
        out f*, the local refinement returns its start, and these tasks run with γ = 0.1), and the
        authors report numerical trouble with PES on Branin, of which our PES met none on these
        tasks.""",
    "synthetic": """Hartmann-6 has a second peak, 0.12 below the highest (−0.9 in log10), and a
        search whose first hill that is tends to stay on it: 6 of 20 runs of JES end there, 9 of MES
        and of EI, 4 of 10 of PES and one of ten of the default. On eight other seeds, with an
        earlier engine, none of kernel, updates of hyperparameters, compressed values and γ was the
        cause alone (`bench/results/tuning-hartmann6.jsonl`). JES has γ = 0.1 here and the others
        have none, as in the paper; γ alone lowers its simple regret on Hartmann-3 by as much as it
        is ahead of MES there (see `gamma`). On Branin
        the best of many trials near an optimum is closer to it than the one prediction is. MES's
        inference regret does not get worse: it is given its lower bound on f*.""",
    "misspecified": """Michalewicz has many narrow ridges, of which 500 trials find few: every
        method ends some 6 below an optimum of 9.7, and they differ by little. On Levy γ helps the
        best trial most where a method looks around the optimum and not at it, as PES does; the
        recommendations of PES are as good without. Those of JES are worse with it: the top of a
        smooth model's mean jumps about on so rough a function, in four of ten runs by more than 10
        in regret from one look to the next in the second half, whatever good trials there are.""",
    "live": """An easy task: the answers after 60 random trials are as good as any method's. It
        shows noise as it comes, and not which method is better.""",
    "spared": """Rows are of the engine before chains of hyperparameters were followed as they are
        now; the two methods share it.""",
    "gp-noisy": """As on the tasks with little noise: MES is given its lower bound on f*, and PES
        knows that the slope at x* is zero.""",
    "noise-levels": """MES and PES as in `gp` and `gp-noisy`. A seed has the same function and the
        same draws of noise at every level, so that what a method loses from one level to another is
        paired, too.""",
    "mlp": """Tables of ten levels per parameter, with the noise of a training's seed: after 80
        trials most methods have seen one of the best rows, and differ by a few thousandths of
        accuracy, a fraction of the noise. Only EI is behind by a hundredth, on two of them.""",
    "pictures": """One function and one run each: a picture and no test. JES and PES are as the
        paper has them: one looks at the optimum, the other around it. EI stayed at the
        second-highest peak.""",
    "runtime": """All methods share one engine here, batched over
        sets and pairs, with the same screening, so that what remains between them is their own
        arithmetic. PES's expectation propagation is batched like the rest: it takes about twice
        the time of JES, where the authors' takes twelve to forty times. MES takes little more than
        JES: it samples no paths, and fits its Gumbel distribution instead.""",
    "approximation": """The gain is the entropy that is lost when the distribution of a value is cut
        off at f*. Moment matching takes the cut distribution for a normal one of the same variance,
        and of all distributions a normal has the most entropy: so the gain is never overestimated,
        and noise, which makes the sum more normal, makes it better.""",
}


def _lines(texts: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: " ".join(text.split()) for name, text in texts.items()})


ABOUT = _lines(_ABOUT)
"""What is shown, by experiment, where its title does not say it."""
WHY = _lines(_WHY)
"""Why results are as they are, by experiment; shown where it has results."""

RUNTIME = """# `runtime`

Seconds per iteration at 100 observations: ten given sets × ten pairs, 10,000 raw candidates, one
gradient climb. In the paper: Table 1.

```sh
optpair bench speed --paper --d 2 --d 4 --d 6 --method jes --method mes --method pes --method ei
```
"""

APPROXIMATION = """# `approximation`

How much of the truncation's gain moment matching sees. In the paper: App. “Approximation quality”.

```sh
optpair bench figures approximation
```
"""
ANSWERS = """\
# `answers`

Functions that others wrote, within users' budgets: [what is measured, and how](../answers.md).
Not in the paper.

```sh
optpair bench run answers
optpair bench arena bench/results/answers.jsonl
```

"""
