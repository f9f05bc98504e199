// Takes the page anew every two seconds. Without this script it stays as it was when it was loaded, and links open pages.

const status = document.getElementById("live");
const dialog = document.getElementById("detail");

const load = async (href) => new DOMParser().parseFromString(await (await fetch(href)).text(), "text/html");

async function refresh() {
  try {
    const now = await load("/");
    for (const id of ["headline", "top", "room"]) {
      const [old, fresh] = [document.getElementById(id), now.getElementById(id)];
      if (old.innerHTML === fresh.innerHTML) continue;
      const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      old.replaceWith(fresh);
      if (focused) fresh.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    }
    status.className = "on";
    status.textContent = "live";
  } catch {
    status.className = "off";
    status.textContent = "no connection to the board; trying again";
  }
  setTimeout(refresh, 2000);
}

// A cell opens over the board.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("main a[href^='/cell/'], dialog a");
  if (event.target === dialog) dialog.close(); // beside what it shows
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.id === "back") return dialog.close();
  dialog.replaceChildren(...(await load(link.getAttribute("href"))).querySelector("main").children);
  if (!dialog.open) dialog.showModal();
});

refresh();
