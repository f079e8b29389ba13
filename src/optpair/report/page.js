"use strict";
// Light or dark, by hand.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

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
