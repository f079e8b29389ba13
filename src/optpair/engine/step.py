"""The steps of the method: from data to the next point and to the best predicted one.

Every step is a pure function of a stream, a memory and data. The memory makes the next step cheap
(warm chains), never what makes it right: an engine that starts cold from the same data gives as
good an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from optpair.acquisition.base import Acquisition, Context
from optpair.acquisition.cost import Cost, fit_cost
from optpair.acquisition.mean import mean
from optpair.acquisition.registry import Control, Entry
from optpair.acquisition.weights import Success, Weight, fit_success, weighted
from optpair.cube.candidates import ANCHORS, Screening
from optpair.cube.climb import PRECISE, maximise
from optpair.cube.cube import Cube, among
from optpair.cube.halton import halton
from optpair.cube.lattice import lattice
from optpair.cube.region import Region
from optpair.engine import budget, goals, warps
from optpair.engine.beliefs import BELIEVED, Placed, believed, drawn, first_believed
from optpair.engine.doubt import doubted
from optpair.engine.earlier import Borrowed, beforehand
from optpair.engine.model import Memory, Model, OutcomeMemory, OutcomeModel
from optpair.engine.plate import (
    REPEATED,
    SAME_OPTIMUM,
    Info,
    Sampled,
    Shared,
    fantasised,
    gaps_of,
    promising,
    taken,
)
from optpair.engine.settings import Settings
from optpair.engine.worth import Feasibility, compromise, plain, rank, under_constraints
from optpair.gp import paths as gp_paths
from optpair.gp.hyperparameters import Hyperparameters
from optpair.gp.inference import Inference
from optpair.gp.kernels import Curves, Radial, Related
from optpair.gp.likelihood import Sample
from optpair.gp.paths import Draws, Paths
from optpair.gp.posterior import Posterior, check_factor, fit
from optpair.gp.process import Process
from optpair.optima.base import Optima
from optpair.problem.beliefs import Beliefs
from optpair.problem.outcomes import Objective, Outcome
from optpair.problem.parameters import Price
from optpair.shapes import Float
from optpair.streams import Stream
from optpair.trials.data import Data, Measured, thinned
from optpair.trials.transform import MOST_NOISE, Scaling

DESIGN_POINTS = 1024
OWN = 16  # points of which the safest is taken after failures
AFTER_OTHERS = 3  # trials of a design after earlier studies
EXPLOIT, UNMET = 0.1, 0.5  # γ, once a trial has met all constraints and before
LIKELY = 64  # screened points whose chance of being feasible is looked at
FULL = 4  # one sampled optimum in so many is looked at as it is, the others at other fidelities
LEVELS = 32  # fidelities that are compared where a climb has ended
COIN, HYPER, PATHS, SEARCH, WIDER = range(5)  # one stream of randomness for each purpose


@dataclass(frozen=True)
class Engine:
    """The whole method for one problem: what is fixed before the first trial."""

    cube: Cube
    outcomes: Mapping[str, Outcome]
    settings: Settings
    acquisition: Entry | Control
    inference: Inference
    legal: Region | None = None
    """Where queries may be; the whole cube by default."""
    targets: Mapping[int, float] = field(default_factory=dict)
    """The columns of fidelities, and what they hold where optima are sought."""
    prices: tuple[Price, ...] = ()
    """What looks are taken to cost where nobody has told."""
    beliefs: Beliefs | None = None
    """What the user believes of the optimum."""
    earlier: Mapping[str, Borrowed] = field(default_factory=dict)
    """What earlier studies lend to the models of some outcomes."""

    def process_of(self, name: str, known: OutcomeMemory | None = None) -> Process:
        """What the model of an outcome is before data, with rows of earlier studies.

        On the scale of the present values, where they are `known`.
        """
        process, lent = self.process, self.earlier.get(name)
        if lent is None:
            return process
        given = lent.alone if known is None else lent.given(known.scaling, known.matches)
        return replace(process, kernel=Related(process.kernel, given))

    @cached_property
    def process(self) -> Process:
        """What the model of an outcome is before data."""
        kernel = self.settings.kernel
        assert not isinstance(kernel, str)
        if self.targets and isinstance(kernel, Radial):
            kernel = Curves(kernel, tuple(self.targets))
        prior = self.settings.prior
        return Process(
            self.cube.layout.owner,
            kernel,
            prior.under_limits() if self.limited else prior,
            runs=bool(self.targets),
        )

    @property
    def limited(self) -> bool:
        """Whether there are constraints."""
        return len(self.objectives) < len(self.outcomes)

    @property
    def region(self) -> Region:
        """Where queries may be: at every fidelity, if the acquisition function compares them."""
        if isinstance(self.acquisition, Entry) and self.acquisition.looks:
            return self.anywhere
        return self.sought

    @cached_property
    def anywhere(self) -> Region:
        """Where data may have been asked for: at every fidelity."""
        return Region.whole(self.cube) if self.legal is None else self.legal

    @cached_property
    def sought(self) -> Region:
        """Where optima may be, and answers are: at the target fidelities."""
        return self.anywhere.fixed(self.targets) if self.targets else self.anywhere

    @property
    def compresses(self) -> bool:
        """Whether bad values are compressed: not where many are only of low fidelity."""
        return self.settings.warp and not self.targets

    @property
    def initial(self) -> int:
        """Told trials before the model is used."""
        chosen, cheap = self.settings.initial, len(self.targets)
        tuned = self.cube.parameters - cheap
        usual = (2 * tuned if cheap else tuned) + 1 + (cheap > 0)
        if self.earlier:
            usual = min(usual, AFTER_OTHERS)
        return usual if chosen is None else chosen

    def exploit(self, data: Data) -> float:
        """γ: by default 0.1, or 0 where the hyperparameters are known.

        Under constraints that no trial has met yet it is ½: then the best predicted point is the
        one most likely to meet them, and until one does there is no answer.
        """
        if self.settings.exploit is not None:
            return self.settings.exploit
        if not self.inference.standardises:
            return 0.0
        unmet = self.limited and not goals.met(self.outcomes.values(), data).any()
        return UNMET if unmet else EXPLOIT

    @property
    def _free(self) -> int:
        """The columns in which optima differ."""
        return self.cube.dimensions - len(self.targets)

    @property
    def steps(self) -> int:
        """Steps of a climb."""
        return budget.climb_steps(self.settings, self._free)

    def suggest(
        self,
        stream: Stream,
        memory: Memory,
        data: Data,
        asked: int,
        design: Stream,
        shared: Shared | None = None,
    ) -> tuple[Float[np.ndarray, " D"], Memory, Info]:
        """The next point to evaluate; `asked` counts the suggestions made before.

        `shared` is what the suggestions before it in a plate have made, whose points are pending.
        """
        shared = shared or Shared()
        x, memory = self._suggested(stream, memory, data, asked, design, shared)
        shared.data, shared.kinds = data, shared.kinds | {shared.info.kind}
        shared.points.append(x)
        return x, memory, shared.info

    def _suggested(
        self,
        stream: Stream,
        memory: Memory,
        data: Data,
        asked: int,
        design: Stream,
        shared: Shared,
    ) -> tuple[Float[np.ndarray, " D"], Memory]:
        info = shared.info
        if not isinstance(self.acquisition, Entry):
            return self.acquisition(design, self._asked_from(data), asked), memory
        if data.told < self.initial:
            return self.design(design, data, asked, shared), memory
        data = self.judge(data, info)
        confirm = not (self.region.once or "confirm" in shared.kinds)
        again = self._unconfirmed(data) if confirm else None
        if again is not None:
            info.kind = "confirm"
            return again, memory
        share = self.exploit(data) * self._share_spent(data)
        exploit = stream.child(COIN).draw().uniform() < share
        memory = self.update(stream.child(HYPER), memory, data, info)
        if shared.model is None:
            shared.model = self.condition(memory, data, info)
        model = shared.model
        if exploit and "exploit" not in shared.kinds:
            with info.stage("maximise"):
                x = self.best(stream.child(SEARCH), model, data, known=self._known(data))
            if not (among(x, data.pending, SAME_OPTIMUM) or among(x, self._known(data), REPEATED)):
                info.kind = "exploit"
                return x, memory
        info.kind = "acquire"
        sampled = self._sampled(stream.child(PATHS), data, shared, self.acquisition)
        with info.stage("maximise"):
            x, info.value = self.choose(
                stream.child(SEARCH), sampled, model, data, self.acquisition, shared
            )
        return x, memory

    def _sampled(self, stream: Stream, data: Data, shared: Shared, entry: Entry) -> Sampled:
        """Drawn by the first of a plate; what is pending since is added for the others."""
        info, model, sampled = shared.info, shared.model, shared.sampled
        assert model is not None
        if sampled is None or sampled.paths is None:
            sampled = self.sample(stream, model, data, info, entry)
            info.gaps = gaps_of(model, sampled)
        else:
            since = data.pending[shared.pending :]
            with info.stage("pending"):
                sampled = sampled._replace(
                    posteriors=fantasised(stream, sampled.posteriors, sampled.paths, since)
                )
        shared.sampled, shared.pending = sampled, len(data.pending)
        return sampled

    def judge(self, data: Data, info: Info) -> Data:
        """The data with the values marked that are more likely slips.

        Among looks at several fidelities none is: a closer one may be far better than all others.
        """
        settings = self.settings
        if self.targets or not (settings.doubt and self.inference.standardises):
            return data
        with info.stage("doubt"):
            for column in self.objectives:
                measured = data.outcome(column)
                found = doubted(measured, self.process, self.compresses, settings.most_rows)
                data = data.doubting(column, found)
        return data

    def update(self, stream: Stream, memory: Memory, data: Data, info: Info) -> Memory:
        """Bring each outcome's hyperparameters, and the scaling they belong to, up to date."""
        updated = {}
        for column, name in enumerate(self.outcomes):
            own = stream.child(column) if column else stream
            with info.stage("hyperparameters"):
                before, measured = memory.get(name), data.outcome(column)
                updated[name] = self._updated(own, name, before, measured, info)
        return updated

    def _updated(
        self,
        stream: Stream,
        name: str,
        before: OutcomeMemory | None,
        measured: Measured,
        info: Info,
    ) -> OutcomeMemory:
        n, inference, outcome = len(measured.y), self.inference, self.outcomes[name]
        if before is not None and n - before.told < self.settings.refresh_every:
            return before
        scaling = Scaling()
        if inference.standardises:
            scaling = self._scaling(measured, outcome) if n else goals.unmeasured(outcome)
        lent = self.earlier.get(name)
        matches = () if lent is None else lent.matches(measured, scaling)
        after = OutcomeMemory(n, scaling, None, matches)
        process = self.process_of(name, after)
        state = None
        if before is not None:
            ratio = before.scaling.scale / scaling.scale
            offset = (before.scaling.loc - scaling.loc) / scaling.scale
            state = inference.rescaled(before.state, ratio, offset, process)
        sample = self._thinned(measured, scaling)
        new = n - (0 if before is None else before.told)
        found = inference.update(stream, state, sample, process, new)
        info.mixing = found.mixing
        return replace(after, state=found.state)

    def _scaling(self, measured: Measured, outcome: Outcome) -> Scaling:
        """That of the values of an outcome."""
        if isinstance(outcome, Objective) or not self.settings.warp:
            return Scaling.of(measured.y[~measured.doubted], self.compresses)
        return warps.around(measured, outcome.limits, self.process.columns)

    def condition(
        self, memory: Memory, data: Data, info: Info, wider: Stream | None = None
    ) -> Model:
        """The posterior of each outcome, and the chance of success where something failed.

        `wider` draws more hyperparameter sets, for the intervals of an answer.
        """
        measured = [data.outcome(column) for column in range(len(self.outcomes))]
        known = [memory[name] for name in self.outcomes]
        processes = [self.process_of(name, memory[name]) for name in self.outcomes]
        pairs = list(zip(measured, known, strict=True))
        samples = [self._standardised(own, of.scaling) for own, of in pairs]
        rows = max(len(own.y) for own in measured) + max(len(data.pending), len(data.failed))
        with info.stage("condition"):
            hypers = [
                self.inference.hyperparameters(of.state, process)
                for of, process in zip(known, processes, strict=True)
            ]
            posteriors = self._posteriors(hypers, samples, processes, rows)
        wide: list[Posterior] | list[None] = [None] * len(known)
        if wider is not None:
            more = [
                self.inference.wider(
                    wider.child(column), of.state, self._thinned(own, of.scaling), processes[column]
                )
                for column, (own, of) in enumerate(pairs)
            ]
            found = [hypers for hypers in more if hypers is not None]
            wide = self._posteriors(found, samples, processes, rows) if found else wide
        scalings, outcomes = [of.scaling for of in known], list(self.outcomes.values())
        models = tuple(
            OutcomeModel(scaling, posterior, more, outcome.reach)
            for scaling, posterior, more, outcome in zip(
                scalings, posteriors, wide, outcomes, strict=True
            )
        )
        first = self.objectives[0]
        worst = float(np.min(scalings[first].standardise(measured[first].y), initial=np.inf))
        weights = self._success(data, info), self._cost(data, info)
        model = Model(models, *weights, worst, goals.wanted(outcomes, scalings))
        info.jitter = max(info.jitter, model.jitter)
        return model

    @property
    def objectives(self) -> tuple[int, ...]:
        """The columns of the objectives."""
        return goals.objectives(self.outcomes.values())

    def _posteriors(
        self,
        hypers: list[Hyperparameters],
        samples: list[Sample],
        processes: list[Process],
        rows: int,
    ) -> list[Posterior]:
        """Under every set or, of many data, some of them; the given ones are all used.

        Every outcome has the same sets.
        """
        if self.inference.standardises:
            stride = budget.set_stride(rows, hypers[0].sets, self.settings.most_rows)
            hypers = [own.some(slice(None, None, stride)) for own in hypers]
        posteriors = [
            fit(own, sample, kernel=process.kernel, columns=process.columns)
            for own, sample, process in zip(hypers, samples, processes, strict=True)
        ]
        sound = np.all([posterior.sound for posterior in posteriors], axis=0)
        if self.inference.standardises and sound.any() and not sound.all():
            return [p.of_sets(sound) for p in posteriors]  # a set that was sampled can be spared
        for posterior in posteriors:
            check_factor(posterior)
        return posteriors

    def _success(self, data: Data, info: Info) -> Success | None:
        if len(data.failed) == 0:
            return None
        with info.stage("failures"):
            return fit_success(self.process, data.X, data.failed, self.settings.most_rows)

    def _cost(self, data: Data, info: Info) -> Cost | None:
        """What queries cost, where that differs."""
        with info.stage("costs"):
            return fit_cost(self.process, data.X, data.cost, self.prices, self.settings.most_rows)

    def _share_spent(self, data: Data) -> float:
        """What a trial has cost on average, beside one at the target that confirms the best point.

        It is a share of what is spent that goes to confirming, not of the trials.
        """
        if not self.prices:
            return 1.0
        logs = np.sum([price.log_cost(data.points)[0] for price in self.prices], axis=0)
        return float(np.mean(np.exp(np.minimum(logs, 0.0))))

    def at_target(self, X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n D"]:
        """The same points at the target fidelities."""
        if not self.targets:
            return X
        X = X.copy()
        X[:, list(self.targets)] = list(self.targets.values())
        return X

    def _looks(
        self, region: Region, X: Float[np.ndarray, "n D"], levels: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "n D"]:
        """Points at other fidelities: from 0, which is `low`, to 1, which is `high`."""
        X = X.copy()
        X[:, list(self.targets)] = levels
        return region.made_legal(X)

    def sample(self, stream: Stream, model: Model, data: Data, info: Info, entry: Entry) -> Sampled:
        """What an acquisition function needs, and posteriors that know what is pending."""
        if not entry.needs and len(data.pending) == 0:
            return Sampled(model.posteriors)
        with info.stage("optima"):
            paths = tuple(
                self._paths(stream.child(3 + column) if column else stream.child(0), posterior)
                for column, posterior in enumerate(model.posteriors)
            )
            optima = anchors = None
            if "optima" in entry.needs:
                anchors = goals.best_data(self.sought, model.wanted, model.posteriors, data)
                optima = self._optima(stream.child(1), paths, model, data, anchors)
        with info.stage("pending"):
            posteriors = fantasised(stream, model.posteriors, paths, data.pending)
        return Sampled(posteriors, paths, optima, anchors)

    def _paths(self, stream: Stream, posterior: Posterior) -> Paths:
        """As many in all, where fewer sets are used than there are."""
        count = self.settings.pairs
        if self.inference.standardises:
            count = count * self.inference.sets // posterior.sets
        draws = Draws.of(stream, posterior, paths=count, features=self.settings.features)
        return gp_paths.draw(draws, posterior)

    def _optima(
        self,
        stream: Stream,
        paths: tuple[Paths, ...],
        model: Model,
        data: Data,
        anchors: Float[np.ndarray, "A D"],
    ) -> Optima:
        points = budget.paths_screened(self.settings, self._free)
        screening = Screening.of(stream, self.cube, points, boxed=self._boxed(data))
        goal = goals.goal(model.wanted)
        optima = goal.optima(paths, self.sought, screening, anchors, self.steps)
        return optima if self.beliefs is None else believed(optima, self.beliefs, model)

    def next_gain(
        self, stream: Stream, sampled: Sampled, model: Model, data: Data, entry: Entry
    ) -> float:
        """What the best next trial would teach; nothing where there is none left to ask for."""
        if self.spent(data):
            return 0.0
        return max(self.choose(stream, sampled, model, data, entry)[1], 0.0)

    def function(
        self,
        stream: Stream,
        sampled: Sampled,
        model: Model,
        data: Data,
        entry: Entry,
        region: Region,
    ) -> tuple[Acquisition, Float[np.ndarray, "N D"]]:
        """The acquisition function as it is maximised, and points at which it is screened."""
        posteriors, paths, optima, anchors = sampled
        paths = paths if "paths" in entry.needs else None
        if anchors is None or posteriors[0] is not model.posteriors[0]:  # something is pending
            anchors = goals.best_data(self.sought, model.wanted, posteriors, data)
        points = self.points(stream.child(1), region, anchors, data, optima=optima is not None)
        context = Context(
            posteriors,
            self.cube,
            points,
            stream.child(0),
            paths,
            optima,
            model.wanted,
            self.sought,
            self.targets,
        )
        weights: tuple[Weight, ...] = model.weights
        if self.beliefs is not None and self.beliefs.placed and optima is None:
            weights = (*weights, Placed(self.beliefs, data.told))
        return weighted(entry.build(context), entry.scale, weights, model.worst), points

    def choose(
        self,
        stream: Stream,
        sampled: Sampled,
        model: Model,
        data: Data,
        entry: Entry,
        shared: Shared | None = None,
    ) -> tuple[Float[np.ndarray, " D"], float]:
        """Build an acquisition function and maximise it; no exact value is asked for again.

        Nor is a point of the same plate. Where the maximum is at one of those, the best
        point that was screened and is none of them takes its place, or one that fills the space,
        if there is one.
        """
        shared = shared or Shared()
        optima, known = sampled.optima, self._known(data)
        region = self.region.without(known)
        acquisition, points = self.function(stream, sampled, model, data, entry, region)
        if optima is not None:
            stars = optima.some_points(budget.STARS)
            if self.targets and region is self.anywhere:
                levels = lattice(len(self.targets), len(stars)).copy()
                levels[::FULL] = list(self.targets.values())
                stars = self._looks(region, stars, levels)
            if region is not self.region:
                stars = stars[region.legal(stars)]
            points = np.concatenate([stars, points])
        values, starts = acquisition.screened, budget.starts(self.settings, len(self.targets))
        if values is None:
            if optima is not None and shared.promising is not None:
                points = shared.promising
            values = acquisition.rough.screen(points)
            if optima is not None and shared.promising is None:
                shared.promising = promising(points, values, starts)
        x, value = maximise(acquisition, region, points, values, starts=starts, steps=self.steps)
        if self.targets and region is self.anywhere:
            x, value = self._best_look(acquisition, region, x, value)
        own, every = np.array(shared.points).reshape(-1, len(x)), region.listed()
        apart = SAME_OPTIMUM if every is None else REPEATED  # rows are told apart as they are
        if taken(x, known, own, apart):
            ranked = points[np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")]
            if every is not None:
                ranked = np.concatenate([ranked, every])
            elif len(own):
                filling = self._filling(region, stream.child(3), DESIGN_POINTS)
                ranked = np.concatenate([ranked, filling])
            other = next((point for point in ranked if not taken(point, known, own, apart)), x)
            x, value = other, float(acquisition.values(other[None])[0])
        return x, value

    def _best_look(
        self, acquisition: Acquisition, region: Region, x: Float[np.ndarray, " D"], value: float
    ) -> tuple[Float[np.ndarray, " D"], float]:
        """The best fidelity for a point: levels are many, and a climb takes one at a time."""
        levels = lattice(len(self.targets), LEVELS).copy()
        levels[:2] = [0.0], [1.0]
        looks = self._looks(region, np.tile(x, (LEVELS, 1)), levels)
        values = acquisition.values(looks)
        best = int(np.argmax(values))
        return (looks[best], float(values[best])) if values[best] > value else (x, value)

    def best(
        self,
        stream: Stream,
        model: Model,
        data: Data,
        *,
        wider: bool = False,
        known: Float[np.ndarray, "k D"] | None = None,
    ) -> Float[np.ndarray, " D"]:
        """The argmax of the averaged posterior mean, where trials are likely to succeed.

        Of a table, rows that are `known` are left out. With several objectives it is a compromise
        between them, drawn by lot. Under constraints it is the best among points that are likely
        feasible or, where none is, the likeliest; `wider` judges that by the sets of an answer.
        """
        constrained = bool(model.wanted.constraints)
        weights = () if model.success is None else (model.success,)  # an answer costs nothing
        function = weighted(self._worth(stream, model), "worth", weights, model.worst)
        penalised = under_constraints(function, model, wider=wider)
        region = self.sought if known is None else self.sought.without(known)
        anchors = goals.best_data(region, model.wanted, model.posteriors, data)
        points = self.points(stream.child(1), region, anchors, data, optima=False)
        if region is not self.sought:
            points = points[region.legal(points)]
        values, starts, steps = penalised.screen(points), self.settings.starts, self.steps
        x, _ = maximise(
            penalised, region, points, values, starts=starts, steps=steps, enough=PRECISE
        )
        if not constrained:
            return x
        likely = points[np.argsort(-values, kind="stable")[:LIKELY]]
        few = np.concatenate([x[None], data.X[region.matches(data.X)], likely])
        chance = Feasibility.of(model, wider=wider).chance(few)
        return few[int(np.argmax(rank(function.values(few), chance)))]

    def _worth(self, stream: Stream, model: Model) -> Acquisition:
        """What a point is worth: the mean of the only objective, or of a random compromise."""
        count = len(model.wanted.objectives)
        if count == 1:
            return plain(model)
        return compromise(model, stream.child(2).draw().dirichlet(np.ones(count))[None])

    def _boxed(self, data: Data) -> bool:
        """Whether points are screened around the best data only."""
        return budget.boxed(self.cube.parameters, data.told)

    def points(
        self,
        stream: Stream,
        region: Region,
        anchors: Float[np.ndarray, "A D"],
        data: Data,
        *,
        optima: bool,
    ) -> Float[np.ndarray, "N D"]:
        """The points at which a function is screened."""
        count = budget.screened(self.settings, optima=optima)
        screening = Screening.of(stream, self.cube, count, boxed=self._boxed(data))
        most = budget.LISTED if optima else None
        found = np.concatenate(screening.points(region, anchors, most))
        if self.beliefs is None or not self.beliefs.placed:
            return found
        more = drawn(stream.child(1), self.beliefs, region, BELIEVED)
        return np.concatenate([found, more])

    def _known(self, data: Data) -> Float[np.ndarray, "k D"]:
        """The points that are not asked for again: exact values are known or on their way there.

        None where values are noisy, unless each row of a table is tried once at most.
        """
        if self.region.once:
            return _seen(data)
        return data.settled if data.exact else data.settled[:0]

    def _asked_from(self, data: Data) -> Region:
        """Where a search without a model looks: of a table, rows that nobody has tried."""
        return self.region.without(_seen(data)) if self.region.once else self.region

    def spent(self, data: Data) -> bool:
        """Whether every row of a table has been tried, and none is to be tried again."""
        return self.region.once and self.region.left(_seen(data)) == 0

    def _unconfirmed(self, data: Data) -> Float[np.ndarray, " D"] | None:
        """The legal point of a doubted value that nobody has looked at again, the best first."""
        for column in self.objectives:
            rows = np.flatnonzero(data.doubted[:, column])
            rows = rows[self.region.legal(data.X[rows])]
            for row in rows[np.argsort(-data.Y[rows, column], kind="stable")]:
                others = np.delete(data.X, row, axis=0)
                if not among(data.X[row], np.concatenate([others, data.pending, data.failed])):
                    return data.X[row]
        return None

    def design(
        self,
        stream: Stream,
        data: Data,
        asked: int,
        shared: Shared | None = None,
    ) -> Float[np.ndarray, " D"]:
        """The next space-filling point; after failures, the safest of a few that are its own.

        No two numbers near each other choose from the same few, and none of these is a point of
        the design without failures: workers that do not see each other's points differ as well.
        """
        region = self.region.without(_seen(data))
        first = self._foretold(stream.child(asked), region, data) if asked == 0 else None
        if first is not None and not among(first, _seen(data)):
            return first
        if self.beliefs is not None and self.beliefs.placed and asked % 2 == 0:
            x = first_believed(stream.child(asked), self.beliefs, region, asked)
            if not among(x, _seen(data)):
                return x
        if len(data.failed) == 0:
            points = np.roll(self._filling(region, stream, DESIGN_POINTS), -asked, axis=0)
            if self.targets and region is self.anywhere:
                points = self._cheap(region, points, asked)
            known = np.array([*self._known(data), *([] if shared is None else shared.points)])
            known = known.reshape(-1, self.cube.dimensions)
            return next((x for x in points if not among(x, known)), points[0])
        order, own = self._own_points(region, stream, asked)
        seen = _seen(data)
        few = _unseen(order[:own], seen)
        if len(few) == 0:  # some levels and categories are few
            few = _unseen(order[:DESIGN_POINTS], seen)[:own]
        if len(few) == 0:
            few = order[:own]
        success = self._success(data, Info())
        assert success is not None
        return np.asarray(few[np.argmax(success.log_weight(few))])

    def _cheap(
        self, region: Region, points: Float[np.ndarray, "N D"], asked: int
    ) -> Float[np.ndarray, "N D"]:
        """Points of a design at their fidelities: cheap, half-way to the target, …, at the target.

        There are few levels, as looks at one and the same can be compared at once: what is common
        to them need not be known.
        """
        targets = np.array(list(self.targets.values()))
        ends = np.array([np.zeros(self.cube.dimensions), np.ones(self.cube.dimensions)])
        cheap = np.array([np.argmin(price.log_cost(ends)[0]) for price in self.prices], float)
        turn = asked % self.initial
        share = 1.0 if turn == self.initial - 1 else 0.5 * (turn % 2)
        level = cheap + (targets - cheap) * share
        return self._looks(region, points, np.tile(level, (len(points), 1)))

    def _foretold(
        self, stream: Stream, region: Region, data: Data
    ) -> Float[np.ndarray, " D"] | None:
        """The best point by what earlier studies say of the only objective, if they do."""
        known = [name for name in self.earlier if isinstance(self.outcomes[name], Objective)]
        if len(known) != 1 or len(self.objectives) != 1:
            return None
        posterior = beforehand(self.process_of(known[0]))
        good = np.argsort(-posterior.residual[0, 0], kind="stable")[:ANCHORS]
        anchors = region.made_legal(posterior.X[good])
        points = self.points(stream, region, anchors, data, optima=False)
        function, starts = mean(posterior), self.settings.starts
        values = function.screen(points)
        return maximise(function, region, points, values, starts=starts, steps=self.steps)[0]

    def _own_points(
        self, region: Region, stream: Stream, asked: int
    ) -> tuple[Float[np.ndarray, "N D"], int]:
        """The points after the design's, from those that belong to `asked` on, and how many do.

        Where there are few legal points at all, so many that eight numbers in a row differ.
        """
        points = self._filling(region, stream, DESIGN_POINTS * (1 + OWN))[DESIGN_POINTS:]
        if not self.cube.continuous.any():
            points = points[np.sort(np.unique(points, axis=0, return_index=True)[1])]
        own = min(max(len(points) // 8, 1), OWN)
        start = own * (asked % (len(points) // own))
        return np.roll(points, -start, axis=0), own

    def _filling(self, region: Region, stream: Stream, count: int) -> Float[np.ndarray, "N D"]:
        return region.fill(halton(stream, self.cube.parameters, count))

    def _standardised(self, measured: Measured, scaling: Scaling) -> Sample:
        """Standardised values or, where hyperparameters are known, in their units."""
        noise_var, floor = measured.noise_var, self.settings.prior.noise_floor
        if self.inference.standardises:
            noise_var = scaling.variance(noise_var, measured.y)
        else:
            known = self.inference.hyperparameters({}, self.process)
            floor *= float(np.max(known.outputscale))
        y = np.where(measured.doubted, 0.0, scaling.standardise(measured.y))
        noise_var = np.where(measured.doubted, MOST_NOISE, noise_var)
        run = measured.trial if self.targets else None
        return Sample(measured.X, y, np.maximum(noise_var, floor), run)

    def _thinned(self, measured: Measured, scaling: Scaling) -> Sample:
        """What hyperparameters are inferred from."""
        return self._standardised(thinned(measured, self.settings.most_rows), scaling)


def _seen(data: Data) -> Float[np.ndarray, "k D"]:
    """The points of all trials, however they ended."""
    return np.concatenate([data.X, data.pending, data.failed])


def _unseen(
    points: Float[np.ndarray, "N D"], seen: Float[np.ndarray, "k D"]
) -> Float[np.ndarray, "n D"]:
    """The points that are none of those seen."""
    return points[[not among(x, seen) for x in points]]
