"use strict";
// Light or dark, by hand.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

// Lines of trials: a stroke along an axis keeps those that cross it there, by the axis' name.
const strokes = new Map();
const pick = (chart) => {
  const section = chart.closest("section");
  const zones = [...chart.querySelectorAll(".zone")];
  const threads = [...chart.querySelectorAll(".thread")];
  const clear = section.querySelector(".clear");
  const show = () => {
    const out = new Set();
    for (const thread of threads) {
      const ys = thread.dataset.y.split(" ");
      const crosses = zones.every((zone, k) => {
        const stroke = strokes.get(zone.dataset.name);
        return !stroke || (ys[k] !== "-" && stroke[0] <= Number(ys[k]) && Number(ys[k]) <= stroke[1]);
      });
      thread.classList.toggle("passed", !crosses);
      if (!crosses) out.add(thread.dataset.n);
    }
    zones.forEach((zone) => {
      const [from, to] = strokes.get(zone.dataset.name) || [0, 0];
      zone.previousElementSibling.setAttribute("y", from);
      zone.previousElementSibling.setAttribute("height", to - from);
    });
    for (const row of document.querySelectorAll(".trials tbody tr"))
      row.classList.toggle("passed", out.has(row.cells[0].textContent));
    const kept = threads.length - out.size;
    section.querySelector(".picked").textContent = strokes.size ? `${kept} of ${threads.length} trials kept` : "";
    clear.hidden = !strokes.size;
  };
  for (const zone of zones) {
    const at = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse()).y;
    let start = null;
    zone.addEventListener("pointerdown", (event) => {
      start = at(event);
      zone.setPointerCapture(event.pointerId);
    });
    zone.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const ends = [start, at(event)].sort((a, b) => a - b);
      if (ends[1] - ends[0] > 3) strokes.set(zone.dataset.name, ends);
      else strokes.delete(zone.dataset.name);
      show();
    });
    zone.addEventListener("pointerup", (event) => {
      if (Math.abs(at(event) - start) <= 3) strokes.delete(zone.dataset.name);
      start = null;
      show();
    });
  }
  clear.addEventListener("click", () => {
    strokes.clear();
    show();
  });
  show();
};

// What stands on the page comes to life; once more wherever it was replaced.
const dress = () => {
  // The cloud: which two axes are seen, and where the dots stand on them.
  const places = document.getElementById("places");
  if (places) {
    const { box, stars, trials, marks } = JSON.parse(places.textContent);
    const cloud = document.getElementById("cloud");
    const menus = ["across", "up"].map((id) => document.getElementById(id));
    const x = (u) => (box.x + (box.w * u) / 1000).toFixed(1);
    const y = (v) => (box.y + box.h * (1 - v / 1000)).toFixed(1);
    const haze = cloud.querySelectorAll(".haze");
    const dots = cloud.querySelectorAll("#stars circle");
    const draw = () => {
      const [i, j] = menus.map((menu) => Number(menu.value));
      for (const [kind, k] of [["x", i], ["y", j]])
        for (const axis of cloud.querySelectorAll(`.${kind}-axis`))
          axis.classList.toggle("off", Number(axis.dataset.k) !== k);
      stars[i].forEach((u, n) => {
        for (const dot of [haze[n], dots[n]]) {
          dot.setAttribute("cx", x(u));
          dot.setAttribute("cy", y(stars[j][n]));
        }
      });
      const path = trials[i].map((u, n) => `M${x(u)} ${y(trials[j][n])}h0`).join("");
      cloud.querySelector(".cloud-trials").setAttribute("d", path);
      ["best", "seen"].forEach((id, n) =>
        cloud
          .querySelector(`#${id} > *`)
          .setAttribute("transform", `translate(${x(marks[i][n])} ${y(marks[j][n])})`),
      );
    };
    menus.forEach((menu) => menu.addEventListener("change", draw));
    draw();
  }

  document.querySelectorAll("svg.parallel").forEach(pick);

  // The table: a click on a column's name sorts by it, a second one the other way; the best come first.
  const body = document.querySelector(".trials tbody");
  document.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const first = button.dataset.first || "up"; // a maximised value begins at the largest
      const again = button.dataset.sorted === first;
      const up = (first === "up") !== again;
      document.querySelectorAll("th button").forEach((other) => delete other.dataset.sorted);
      button.dataset.sorted = up ? "up" : "down";
      const key = (row) => {
        const cell = row.cells[column];
        const exact = cell.querySelector("data");
        const text = exact ? exact.value : cell.textContent.replaceAll("−", "-");
        return text.trim() === "" ? null : isNaN(parseFloat(text)) ? text : parseFloat(text);
      };
      const order = (a, b) => {
        if (a === null || b === null) return (a === null) - (b === null);
        const less = typeof a === typeof b ? a < b : typeof a === "number";
        return (a === b ? 0 : less ? -1 : 1) * (up ? 1 : -1);
      };
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort((a, b) => order(a[0], b[0]));
      body.append(...rows.map(([, row]) => row));
    });
  });
};
dress();
