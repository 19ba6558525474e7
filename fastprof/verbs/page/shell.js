// What surrounds the views: tabs, the menu, and the drawer with table and details, whose place and size are remembered.
const TABS = [["treemap", "Treemap", "Functions as large as their self costs, by object and file"], ["heavy", "Flame", "Functions below their callers"], ["time", "Time", "Calls in time order"],
  ["inverted", "Inverted", "Functions by self cost, each with its callers"],
  ["sandwich", "Sandwich", "The selected function with its callers and callees"],
  ["graph", "Graph", "The most expensive functions below their callers"], ["table", "Table", "All functions"], ["details", "Details", "The selected function"]];
const PHONE = 760;  // pixels, as in page.css
const KEPT = "fastprof page";  // in the browser's storage

class Shell {
  // isThere(view): whether the page has it; on: {show(view), placed()}
  constructor(isThere, on) {
    this.on = on;
    this.holder = byId("shell");
    this.kept = this.read();
    this.tabs = TABS.filter(([view]) => isThere(view)).map(([view, title, says]) => element("button", {
      type: "button", role: "tab", "data-view": view, title: says, "aria-selected": "false", onclick: () => on.show(view),
    }, title));
    byId("tabs").append(...this.tabs);
    byId("tabs").addEventListener("keydown", event => {
      const at = this.tabs.indexOf(event.target) + {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!this.tabs[at]) return;
      event.preventDefault();
      this.tabs[at].focus();
      this.tabs[at].click();
    });
    this.addMenu();
    this.addSplitter();
    this.place(this.kept.place || (innerWidth >= 1000 ? "side" : "below"));
    byId("place").addEventListener("change", () => {
      this.keep({place: byId("place").value, size: undefined});
      this.place(this.kept.place);
    });
    const about = byId("about-box"), open = () => {
      this.closeMenu();
      about.showModal();
    };
    byId("summary").addEventListener("click", open);
    byId("about-button").addEventListener("click", open);
    byId("about-close").addEventListener("click", () => about.close());
  }
  has(view) { return this.tabs.some(tab => tab.dataset.view === view); }
  // Marks the tab of a view.
  show(view) {
    this.holder.dataset.view = view;
    for (const tab of this.tabs) tab.setAttribute("aria-selected", tab.dataset.view === view);
  }
  addMenu() {
    const menu = byId("menu"), button = byId("menu-button");
    const open = isOpen => {
      menu.hidden = !isOpen;
      button.setAttribute("aria-expanded", isOpen);
    };
    button.addEventListener("click", () => open(menu.hidden));
    addEventListener("pointerdown", event => {
      if (!menu.hidden && !menu.contains(event.target) && event.target !== button) open(false);
    });
    menu.addEventListener("keydown", event => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      open(false);
      button.focus();
    });
    this.closeMenu = () => open(false);
  }
  place(where) {
    byId("place").value = this.holder.dataset.place = where;
    byId("splitter").setAttribute("aria-orientation", where === "below" ? "horizontal" : "vertical");
    if (this.kept.size) this.holder.style.setProperty("--drawer", `${this.kept.size}%`);
    else this.holder.style.removeProperty("--drawer");
    this.on.placed();
  }
  addSplitter() {
    const splitter = byId("splitter"), isBelow = () => this.holder.dataset.place === "below";
    const set = size => {
      this.keep({size: Math.round(10 * Math.min(80, Math.max(12, size))) / 10});
      this.place(this.holder.dataset.place);
    };
    splitter.addEventListener("pointerdown", event => {
      event.preventDefault();
      splitter.setPointerCapture(event.pointerId);
      const move = ({clientX, clientY}) => {
        const {right, bottom, width, height} = this.holder.getBoundingClientRect();
        set(isBelow() ? 100 * (bottom - clientY) / height : 100 * (right - clientX) / width);
      };
      const end = () => splitter.removeEventListener("pointermove", move);
      splitter.addEventListener("pointermove", move);
      splitter.addEventListener("pointerup", end, {once: true});
      splitter.addEventListener("pointercancel", end, {once: true});
    });
    splitter.addEventListener("keydown", event => {
      const step = {ArrowLeft: 4, ArrowUp: 4, ArrowRight: -4, ArrowDown: -4}[event.key];
      if (!step) return;
      event.preventDefault();
      set((this.kept.size || (isBelow() ? 38 : 31)) + step);
    });
  }
  // A page of another site, or a browser without storage, forgets.
  read() {
    try {
      const {place, size} = JSON.parse(localStorage.getItem(KEPT)) || {};
      return {place: ["side", "below", "none"].includes(place) ? place : "", size: size >= 12 && size <= 80 ? size : 0};
    } catch {
      return {};
    }
  }
  keep(change) {
    Object.assign(this.kept, change);
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.kept));
    } catch { /* not allowed */ }
  }
}
