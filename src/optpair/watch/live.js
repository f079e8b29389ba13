"use strict";
// The page as the server has it, whenever that has changed. What the reader chose stays.
const regions = () => [...document.querySelectorAll("[data-live]")];

// A reader's choices: menus, the sorted column, what is unfolded, how far lists are scrolled.
const nameOf = (details) => {
  const row = details.closest("tr");
  return row ? row.cells[0].textContent : details.querySelector("summary").textContent;
};
const chosen = (region) => {
  const menus = [...region.querySelectorAll("select")].map((menu) => menu.value);
  const heads = [...region.querySelectorAll("th button")];
  const column = heads.findIndex((head) => head.dataset.sorted);
  const clicks = column < 0 ? 0 : heads[column].dataset.sorted === "up" ? 1 : 2;
  const open = [...region.querySelectorAll("details[open]")].map(nameOf);
  const lists = [...region.querySelectorAll(".scroll, dl")].map((l) => [l.scrollLeft, l.scrollTop]);
  return { menus, column, clicks, open, lists };
};
const choose = (region, { menus, column, clicks, open, lists }) => {
  region.querySelectorAll("select").forEach((menu, i) => {
    if (menus[i] !== undefined && menu.querySelector(`option[value="${menus[i]}"]`)) {
      menu.value = menus[i];
      menu.dispatchEvent(new Event("change"));
    }
  });
  const head = region.querySelectorAll("th button")[column];
  for (let i = 0; head && i < clicks; i++) head.click();
  for (const details of region.querySelectorAll("details"))
    if (open.includes(nameOf(details))) details.open = true;
  region.querySelectorAll(".scroll, dl").forEach((list, i) => {
    if (lists[i]) [list.scrollLeft, list.scrollTop] = lists[i];
  });
};

const swap = (text) => {
  const page = new DOMParser().parseFromString(text, "text/html");
  const left = scrollY;
  for (const region of regions()) {
    const now = page.getElementById(region.id);
    if (!now || now.dataset.live === region.dataset.live) continue;
    const before = chosen(region);
    const placed = document.importNode(now, true);
    region.replaceWith(placed);
    if (placed.id === "live-report") dress();
    choose(placed, before);
  }
  scrollTo({ top: left, behavior: "instant" });
  document.body.dataset.version = page.body.dataset.version;
};

const sleep = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
const follow = async () => {
  const { wait } = document.body.dataset;
  for (;;) {
    try {
      const { version } = document.body.dataset;
      const mark = wait.includes("?") ? "&" : "?";
      const answer = await fetch(`${wait}${mark}version=${version}`, { cache: "no-store" });
      if (answer.status === 200) swap(await answer.text());
      else if (answer.status !== 204) throw new Error(answer.status);
      document.getElementById("gone").hidden = true;
    } catch {
      document.getElementById("gone").hidden = false;
      await sleep(3);
    }
  }
};
follow();
