"""The script of the pages: sorting and folding, by mouse and keyboard; it makes no request."""

from __future__ import annotations

SCRIPT = """
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const key = (body, column) => body.rows[0].cells[column].dataset.sort;
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  const sort = (button) => {
    const head = button.parentElement, table = head.closest("table");
    const column = Number(button.dataset.column);
    const down = head.getAttribute("aria-sort") !== "descending";
    const bodies = [...table.tBodies].map((body, index) => [body, index]);
    bodies.sort(([a, i], [b, j]) => {
      const [x, y] = [key(a, column), key(b, column)];
      const order = compare(x, y);
      const signed = down && x !== "" && y !== "" ? -order : order;
      return signed || i - j;
    });
    for (const cell of head.parentElement.cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.append(...bodies.map(([body]) => body));
  };
  const fold = (button, open) => {
    button.setAttribute("aria-expanded", String(open));
    button.closest("tr").nextElementSibling.hidden = !open;
  };
  const addToggle = (row) => {
    const cell = row.cells[0], button = document.createElement("button");
    button.type = "button";
    button.className = "toggle";
    button.append(...cell.childNodes);
    cell.append(button);
    fold(button, false);
    button.addEventListener("click", () =>
      fold(button, button.getAttribute("aria-expanded") !== "true"));
  };
  all("tr.opens").forEach(addToggle);
  all("button.sort").forEach((button) => button.addEventListener("click", () => sort(button)));
  all("button.every").forEach((button) => button.addEventListener("click", () => {
    const toggles = all("button.toggle", button.closest("section"));
    const open = toggles.some((toggle) => toggle.getAttribute("aria-expanded") !== "true");
    toggles.forEach((toggle) => fold(toggle, open));
    button.textContent = open ? "Close all" : "Open all";
  }));
  document.documentElement.classList.add("live");
})();
"""
