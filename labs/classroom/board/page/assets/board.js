// Keeps the page as the board is. Without this script the page shows how it was when it was loaded, and its
// links open pages. All text from outside goes through textContent; the page's policy forbids anything else.

const byId = (id) => document.getElementById(id);
const table = byId("room");
const body = table.tBodies[0];
const dialog = byId("detail");

// el makes an element with text and children.
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

const cellLink = (link) => el("a", { "data-cell": true, href: link.href }, link.text);

// ---- the room

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function showCell(td, cell) {
  const link = td.firstElementChild;
  if (td.dataset.run === cell.run && link.getAttribute("aria-label") === cell.label) return;
  if (td.dataset.run !== undefined && td.dataset.run !== cell.run) flash(td);
  td.className = cell.state;
  td.dataset.run = cell.run;
  link.setAttribute("href", cell.href);
  link.setAttribute("aria-label", cell.label);
  setText(link.children[1], cell.symbol);
  setText(link.children[2], cell.text);
}

function flash(td) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  td.animate([{ outline: "0.2rem solid currentColor" }, { outline: "0.2rem solid transparent" }], 1500);
}

const rowOf = (id) => body.querySelector(`tr[data-learner="${Number(id)}"]`);

function showRow(row) {
  let tr = rowOf(row.id);
  if (!tr) {
    tr = byId("row").content.firstElementChild.cloneNode(true);
    tr.dataset.learner = row.id;
    body.append(tr);
  }
  tr.classList.toggle("stuck", row.stuck);
  setText(tr.cells[0], row.name);
  row.cells.forEach((cell, i) => showCell(tr.cells[i + 1], cell));
}

// order puts the rows where they belong, without taking away the focus where nothing moves.
function order(ids) {
  ids.forEach((id, i) => {
    const tr = rowOf(id);
    if (tr && body.rows[i] !== tr) body.insertBefore(tr, body.rows[i] ?? null);
  });
}

// ---- the top

// replace fills a list anew, and leaves the focus on the link that had it.
function replace(list, items) {
  const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  list.replaceChildren(...items);
  if (focused) list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

function stuckItem(s) {
  return el("li", { class: s.quiet ? "quiet" : undefined },
    cellLink(s), " ", el("span", {}, s.check), " ", el("small", {}, s.since));
}

function obstacleItem(o) {
  const names = el("small");
  o.learners.forEach((link, i) => names.append(...(i ? [", "] : []), cellLink(link)));
  if (o.more) names.append(" " + o.more);
  return el("li", {}, el("b", {}, o.count), " ", el("span", {}, o.check), " ", names);
}

let shownSummary = "";

function showSummary(summary) {
  const text = JSON.stringify(summary);
  if (text === shownSummary) return;
  shownSummary = text;
  setText(byId("headline"), summary.headline);
  replace(byId("stuck"), summary.stuck.map(stuckItem));
  replace(byId("obstacles"), summary.obstacles.map(obstacleItem));
  for (const step of summary.steps) {
    const li = byId("steps").querySelector(`[data-lab="${Number(step.lab)}"]`);
    if (!li) continue;
    const bar = li.querySelector("progress");
    bar.max = step.of || 1;
    bar.value = step.passed;
    setText(li.querySelector("small"), step.text);
  }
}

// ---- live

function live() {
  const status = byId("live");
  const source = new EventSource("/events?after=" + encodeURIComponent(document.body.dataset.version));
  source.onopen = () => { setText(status, "live"); status.className = "on"; };
  source.onerror = () => {
    status.className = "off";
    setText(status, "no connection to the board; trying again");
    // A browser tries again by itself unless it was turned away: by a board that is being started, or
    // because the token has ended.
    if (source.readyState === EventSource.CLOSED) setTimeout(again, 2000);
  };
  source.onmessage = (event) => {
    const update = JSON.parse(event.data);
    document.body.dataset.version = event.lastEventId;
    update.rows.forEach(showRow);
    if (update.order) order(update.order);
    showSummary(update.summary);
    settleFocus();
    if (dialog.open && update.rows.some((row) => row.cells.some((c) => c.href === opened && c.run !== openedRun))) show(opened);
  };
}

async function again() {
  const answer = await fetch("/", { method: "HEAD" }).catch(() => null);
  if (answer?.status === 401) location.reload();
  else live();
}

// ---- one cell

let opened = "";
let openedRun = "";

async function show(href) {
  const answer = await fetch(href, { headers: { Accept: "application/json" } });
  if (!answer.ok) {
    location.href = href;
    return;
  }
  const detail = await answer.json();
  opened = href;
  openedRun = document.querySelector(`#room a[href="${CSS.escape(href)}"]`)?.parentElement.dataset.run ?? "";
  setText(byId("detail-title"), detail.title);
  setText(byId("detail-headline"), detail.headline);
  byId("detail-headline").className = detail.state;
  byId("detail-checks").replaceChildren(...detail.checks.map((c) =>
    el("li", { class: c.state }, el("b", {}, c.symbol), " ", el("span", {}, c.title), " ", el("small", {}, c.note))));
  setText(byId("detail-report"), detail.report);
  replace(byId("detail-history"), detail.history.map((h) =>
    el("li", { class: h.state }, el("b", {}, h.symbol), " ",
      el("a", { "data-cell": true, href: h.href, "aria-current": h.shown ? "true" : undefined }, h.text), " ", el("span", {}, h.note))));
  dialog.classList.toggle("untried", detail.checks.length === 0);
  if (!dialog.open) dialog.showModal();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-cell]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    show(link.getAttribute("href"));
  } else if (event.target === dialog) {
    dialog.close(); // beside the dialog
  }
});

// A dialog gives the focus back to what opened it. That line may have gone meanwhile.
dialog.addEventListener("close", () => {
  const back = opened.split("?")[0];
  opened = "";
  if (document.activeElement === document.body) document.querySelector(`#room a[href="${CSS.escape(back)}"]`)?.focus();
});

// ---- the keyboard: one stop of the Tab key for the whole room, arrow keys inside it

const linkAt = (row, column) => body.rows[row]?.cells[column]?.querySelector("a");

function settleFocus() {
  const links = body.querySelectorAll("a");
  const current = body.querySelector("a[tabindex='0']") ?? links[0];
  for (const link of links) {
    const wanted = link === current ? "0" : "-1";
    if (link.getAttribute("tabindex") !== wanted) link.setAttribute("tabindex", wanted);
  }
}

const steps = {
  ArrowRight: (row, column) => [row, column + 1],
  ArrowLeft: (row, column) => [row, column - 1],
  ArrowDown: (row, column) => [row + 1, column],
  ArrowUp: (row, column) => [row - 1, column],
  Home: (row, column, event) => [event.ctrlKey ? 0 : row, 1],
  End: (row, column, event) => [event.ctrlKey ? body.rows.length - 1 : row, table.rows[0].cells.length - 1],
};

table.addEventListener("keydown", (event) => {
  const td = event.target.closest("td");
  const step = steps[event.key];
  if (!td || !step || event.altKey || event.metaKey) return;
  event.preventDefault();
  const [row, column] = step(td.parentElement.sectionRowIndex, td.cellIndex, event);
  linkAt(row, column)?.focus();
});

table.addEventListener("focusin", (event) => {
  const link = event.target.closest("td a");
  if (!link) return;
  body.querySelector("a[tabindex='0']")?.setAttribute("tabindex", "-1");
  link.setAttribute("tabindex", "0");
});

if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.pathname);
settleFocus();
live();
