"""The live page: the report of a running search, with what runs and what failed above it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from optpair.report import page as report
from optpair.report.markup import Markup, el, join
from optpair.report.outcome_words import probability
from optpair.report.outcomes import JointFindings
from optpair.report.words import count, exact, number, short
from optpair.watch.boards import Board, Snapshot
from optpair.watch.sources import Running

FAILURES = 3  # that are shown at first
NOTE = 200  # characters of a note that are shown
REFRESH = 10  # seconds, in a browser that runs no scripts
STYLE = report.asset("page.css") + report.asset("live.css", "optpair.watch")
SCRIPTS = (report.asset("page.js"), report.asset("live.js", "optpair.watch"))

POLICY = (
    f"{report.policy(*SCRIPTS)}; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""What browsers may do: run the scripts of this page, by their hashes, and reach its server."""

ASKED = "Asking the model …"
ORDERS = {"pause": "Pause", "resume": "Resume", "stop": "Stop all workers"}


@dataclass(frozen=True)
class Reader:
    """A visitor. With the token they may give orders, and links keep the token."""

    token: str = ""

    def link(self, path: str) -> str:
        """An address that keeps the token."""
        return f"{path}?token={self.token}" if self.token else path


def one(board: Board, index: int, reader: Reader, alone: bool) -> str:
    """The page of one search; `alone` if there is no other."""
    snapshot, source = board.snapshot, board.source
    back = () if alone else (el("p", el("a", "← all searches", href=reader.link("/"))),)
    header = el(
        "header",
        el("div", *back, el("h1", short(source.name, 200)), _place(source.place)),
        _theme(),
    )
    main = el(
        "main",
        _region("state", _state(snapshot), _bar(snapshot)),
        _region("controls", _controls(snapshot, f"/study/{index}/order", reader)),
        el(
            "div",
            _region("running", _running(snapshot)),
            _region("failures", _failures(snapshot)),
            class_="pair",
        ),
        _region("report", _report(snapshot)),
    )
    single = None if isinstance(snapshot.found, JointFindings) else snapshot.found
    parts = [header, main, report.footer(single)]
    return _page(source.name, parts, reader.link(f"/study/{index}/wait"), board.version)


def several(boards: Sequence[Board], reader: Reader, version: str) -> str:
    """The page of several searches, a card each."""
    title = count(len(boards), "search").replace("searchs", "searches")
    header = el("header", el("div", el("h1", title)), _theme())
    cards = (_card(board, reader.link(f"/study/{i}")) for i, board in enumerate(boards))
    main = el("main", _region("cards", el("div", *cards, class_="cards")))
    return _page(title, [header, main], reader.link("/wait"), version)


def _page(title: str, parts: Sequence[Markup], wait: str, version: str) -> str:
    gone = "optpair watch does not answer: it has ended, or the network is down. Trying again …"
    body = el(
        "body",
        el("p", gone, id="gone", hidden=True, role="alert"),
        *parts,
        *(el("script", Markup(script)) for script in SCRIPTS),
        data_wait=wait,
        data_version=version,
    )
    refresh = el("noscript", el("meta", http_equiv="refresh", content=REFRESH))
    return report.document(title, STYLE, body, refresh)


def _theme() -> Markup:
    return el("button", "◐", id="theme", type="button", title="light or dark")


def _place(place: str) -> Markup:
    return el("p", short(place, 200))


def _region(name: str, *parts: object) -> Markup:
    """A part of the page, which the script replaces as a whole when its digest has changed."""
    inside = join(parts)
    digest = hashlib.sha256(inside.encode()).hexdigest()[:16]
    return el("div", inside, id=f"live-{name}", data_live=digest)


def _status(snapshot: Snapshot) -> tuple[str, str]:
    """What a search is doing: a class for its colour, and words."""
    view = snapshot.view
    if snapshot.away:
        return "away", "cannot be read"
    if view is None:
        return "idle", "being read …"
    if view.paused:
        return "paused", "paused"
    running, by_hand = (view.counts.get(state, 0) for state in ("running", "by hand"))
    if view.evaluations is not None and view.ended >= view.evaluations:
        return "done", "complete"
    if running:
        return "running", f"{count(running, 'trial')} running"
    if by_hand or view.running:
        return "running", f"{count(len(view.running), 'trial')} out"
    return "idle", "nothing runs"


def _state(snapshot: Snapshot) -> Markup:
    kind, words = _status(snapshot)
    facts: list[object] = [el("strong", words, class_=f"badge {kind}")]
    if snapshot.view is not None:
        facts.append(el("span", _counted(snapshot)))
    lines = [el("p", *facts, class_="status")]
    if snapshot.away:
        lines.append(
            el(
                "p",
                f"Cannot be read since {snapshot.since}: {snapshot.away}. What you see is from "
                "before; the page continues by itself when the search is back.",
                class_="alert",
                role="alert",
            )
        )
    return join(lines)


def _counted(snapshot: Snapshot) -> str:
    view = snapshot.view
    assert view is not None
    states = ", ".join(f"{n} {state}" for state, n in view.counts.items() if n) or "no trials yet"
    most = view.evaluations
    made = "" if most is None else f"{view.ended} of {most} evaluations"
    if most is not None and view.ended > most:
        made = f"{view.ended} evaluations, of which {most} were wanted"
    return " · ".join(filter(None, (made, view.spent, states)))


def _bar(snapshot: Snapshot) -> Markup:
    view = snapshot.view
    if view is None or view.evaluations is None:
        return Markup()
    return el("progress", value=view.ended, max=view.evaluations, aria_label="evaluations made")


def _controls(snapshot: Snapshot, action: str, reader: Reader) -> Markup:
    view = snapshot.view
    if view is None or view.paused is None:
        return Markup()
    if not reader.token:
        note = "To pause or stop the workers, open the address that optpair watch printed."
        return el("p", note, class_="note")
    wanted = "resume" if view.paused else "pause"
    sure = el(
        "details",
        el("summary", "Stop …"),
        el("p", "Running trials are finished first; optpair run continues from there."),
        _order("stop", action, reader),
    )
    return el("div", _order(wanted, action, reader), sure, class_="controls")


def _order(order: str, action: str, reader: Reader) -> Markup:
    return el(
        "form",
        el("input", type="hidden", name="token", value=reader.token),
        el("button", ORDERS[order], type="submit", name="order", value=order, class_="order"),
        method="post",
        action=action,
    )


def _running(snapshot: Snapshot) -> Markup:
    trials = () if snapshot.view is None else snapshot.view.running
    if not trials:
        return Markup()
    rows = (
        el("li", el("strong", f"trial {t.number}"), " ", _about(t), el("code", _listed(t)))
        for t in trials
    )
    return el("section", el("h2", "Running now"), el("ul", *rows, class_="rows"), class_="card")


def _about(trial: Running) -> str:
    known = [trial.state if trial.state != "running" else "", trial.worker]
    known.append(f"since {trial.since}" if trial.since else "")
    return " · ".join(filter(None, known))


def _listed(trial: Running) -> str:
    return ", ".join(f"{name} = {short(value, 24)}" for name, value in trial.params.items())


def _failures(snapshot: Snapshot) -> Markup:
    failed = () if snapshot.view is None else snapshot.view.failures
    if not failed:
        return Markup()
    rows = [
        el(
            "li",
            *(el("strong", f"trial {f.number}"), " ", f.reason or "failed"),
            *(el("code", f"{name}: {short(note, NOTE)}") for name, note in f.notes.items()),
            title=f.reason,
        )
        for f in reversed(failed)
    ]
    first, more = rows[:FAILURES], rows[FAILURES:]
    rest = [
        el("details", el("summary", f"{len(more)} more"), el("ul", *more, class_="rows bad"))
    ] * bool(more)
    return el(
        "section",
        el("h2", f"Failed: {count(len(failed), 'trial')}"),
        el("ul", *first, class_="rows bad"),
        *rest,
        class_="card",
    )


def _report(snapshot: Snapshot) -> Markup:
    notes = []
    if snapshot.problem:
        notes.append(el("p", f"No answers: {snapshot.problem}.", class_="alert"))
    elif snapshot.behind and snapshot.view is not None:
        words = ASKED
        if snapshot.subject is not None:
            seen = count(len(snapshot.subject.told), "value")
            words = f"The answers below are from {seen}; newer trials are being added."
        notes.append(el("p", words, class_="note"))
    return join([*notes, snapshot.report])


def _card(board: Board, href: str) -> Markup:
    snapshot = board.snapshot
    kind, words = _status(snapshot)
    return el(
        "article",
        el("h2", el("a", short(board.source.name, 60), href=href)),
        el("p", short(board.source.place, 80), class_="note"),
        el("p", el("strong", words, class_=f"badge {kind}"), class_="status"),
        el("p", "" if snapshot.view is None else _counted(snapshot)),
        _bar(snapshot),
        _best(snapshot),
        *([el("p", ASKED, class_="note")] * _is_asked(snapshot)),
        *([el("p", snapshot.away or snapshot.problem, class_="alert")] * _has_problem(snapshot)),
        class_="card",
    )


def _is_asked(snapshot: Snapshot) -> bool:
    """Whether the model has not yet answered about a search that has been read."""
    return snapshot.behind and snapshot.view is not None and snapshot.subject is None


def _has_problem(snapshot: Snapshot) -> bool:
    return bool(snapshot.away or snapshot.problem)


def _best(snapshot: Snapshot) -> Markup:
    found, said = snapshot.found, snapshot.said
    if found is None or said is None:
        return Markup()
    if isinstance(found, JointFindings):
        shown = _compromises(found) if found.volume is not None else _limited(found)
    else:
        best = found.recommended
        shown = _predicted("recommended", best.mean, best.low, best.high)
    return join([shown, el("p", said.headline)])


def _predicted(what: str, mean: float, low: float, high: float) -> Markup:
    spread = (high / 2 - low / 2) / 2
    ends = f"{number(low, spread)} to {number(high, spread)}"
    return join(
        [
            el("p", exact(mean, spread), class_="big"),
            el("p", f"{what}, predicted; 95 % interval {ends}", class_="note"),
        ]
    )


def _limited(found: JointFindings) -> Markup:
    """The best point under constraints, and the probability that it meets them."""
    (name,), chance = found.gap, found.best.chance or 0.0
    worth = _predicted(name, *found.best.outcomes[name])
    note = f"meets all limits with a probability of {probability(chance)}"
    return join([worth, el("p", note, class_="note")])


def _compromises(found: JointFindings) -> Markup:
    assert found.volume is not None
    names = " and ".join(found.gap)
    size = found.volume.size
    return join(
        [
            el("p", count(len(found.points), "compromise"), class_="big"),
            el("p", f"between {names}", class_="note"),
            el("p", f"hypervolume {number(size.mean)}", class_="note"),
        ]
    )
