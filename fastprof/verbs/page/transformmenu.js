// The menu of a function, the keys of its entries, and the steps so far, each with a button that takes it back.
//
// page: {data, state, flame, treemap, view, transforms, table(), nameOf, labelOf, isCycle, choose(fn, where), sandwich(fn), changed()}
class TransformMenu {
  constructor(page) {
    this.page = page;
    this.holder = byId("transform-menu");
    this.holder.addEventListener("keydown", event => this.key(event));
    this.holder.addEventListener("focusout", ({relatedTarget}) => { if (!this.holder.contains(relatedTarget)) this.close(false); });
    document.addEventListener("contextmenu", event => this.at(event));
    addEventListener("keydown", event => {  // opens the menu of the selected function
      if (event.key !== "ContextMenu" && !(event.key === "F10" && event.shiftKey)) return;
      const {left, top, width, height} = event.target.getBoundingClientRect();
      event.preventDefault();
      this.open(page.state.chosen, {clientX: left + width / 2, clientY: top + height / 2}, event.target);
    });
    addEventListener("pointerdown", ({target}) => { if (!this.holder.hidden && !this.holder.contains(target)) this.close(false); });
  }
  // Selects what is at the pointer, and opens its menu.
  at(event) {
    const {page: {flame, treemap, state, choose, nameOf}} = this, {target} = event;
    const row = target.closest("#table .rows .row"), node = target.closest("#callgraph .node");
    const box = target === flame.canvas ? flame.at(event) : target === treemap.canvas ? treemap.at(event) : null;
    if (!row && !node && !box && !target.closest("#stage")) return;
    const found = row ? this.page.table().order[row.getAttribute("aria-rowindex") - 2] : node ? Number(node.dataset.fn) : box?.fn ?? -1;
    const fn = found < this.page.data.column("function name").length ? found : -1;  // not a group, not [pruned]
    event.preventDefault();
    if (fn >= 0 && nameOf(fn)) {
      if (target === flame.canvas) flame.focused = box.many ? -1 : box.id;
      choose(fn, target === flame.canvas ? "flame" : row ? "table" : "graph");
    }
    this.open(fn, event, byId({graph: "callgraph", treemap: "treemap"}[state.order] || "flame"));
  }
  // The functions of the selected box and its callers, outermost first; null: none is selected.
  subtree() {
    const {flame: {boxes, focused: id}, view} = this.page;
    return id > 0 && boxes instanceof TreeBoxes ? view.tree.path(id) : null;
  }
  // Of a function: [key, text, step], what does not apply is left out.
  entries(fn) {
    const {page, page: {data: {head: {texts}, column}, transforms}} = this, found = [];
    const isFunction = fn >= 0 && fn !== NONE && !page.isCycle(fn), name = isFunction && page.nameOf(fn), short = isFunction && middleOf(page.labelOf(fn), 48);
    const object = isFunction ? texts[column("function object")[fn]] : "", path = this.subtree();
    const has = kind => transforms.steps.some(step => step[0] === kind);
    if (isFunction) {
      found.push(["h", `Hide ${short}`, ["hide", `^${literal(name)}$`]], ["x", `Focus on ${short}`, ["focus", `^${literal(name)}$`]]);
      if (path) found.push(["X", "Focus on this subtree", ["subtree", pathOf(path.map(page.nameOf))]]);
    }
    if (object) found.push(["H", `Hide the ${objectTitle(page.data)} ${baseName(object)}`, ["hide-object", `^${literal(object)}$`]],
      ["o", `Collapse the ${objectTitle(page.data)} ${baseName(object)}`, ["collapse-object", `^${literal(object)}$`]]);
    if (!has("collapse-recursion")) found.push(["r", "Collapse recursion", ["collapse-recursion", ""]]);
    if (!has("merge-lines") && transforms.hasLines) found.push(["m", "Merge lines", ["merge-lines", ""]]);
    const search = byId("search").value;
    if (search) found.push(["", `Hide what matches ${middleOf(search, 40)}`, ["hide", search]]);
    return found;
  }
  do(step) {
    this.page.transforms.steps.push(step);
    this.page.changed();
  }
  undo(at = -1) {
    if (!this.page.transforms.steps.splice(at, 1).length) return;
    this.page.changed();
  }
  // Whether a key means something here.
  press(key) {
    if (key === "u") this.undo();
    else if (key === "U") this.undoAll();
    else {
      const entry = this.entries(this.page.state.chosen).find(([name]) => name === key);
      if (!entry) return false;
      this.do(entry[2]);
    }
    return true;
  }
  undoAll() {
    if (!this.page.transforms.isActive) return;
    this.page.transforms.steps = [];
    this.page.changed();
  }
  open(fn, {clientX, clientY}, from) {
    const {transforms} = this.page, item = (key, text, run) => element("button", {type: "button", role: "menuitem", tabindex: "-1", onclick: () => {
      this.close(true);
      run();
    }}, element("span", {}, text), element("kbd", {}, key));
    this.from = from;
    const known = fn >= 0 && fn !== NONE ? [item("", "Callers and callees", () => this.page.sandwich(fn))] : [];
    this.holder.replaceChildren(...this.entries(fn).map(([key, text, step]) => item(key, text, () => this.do(step))), ...known,
      ...transforms.isActive ? [item("u", `Undo: ${transforms.text(transforms.steps.at(-1))}`, () => this.undo()), item("U", "Undo all", () => this.undoAll())] : []);
    this.holder.hidden = false;
    const {offsetWidth: width, offsetHeight: height} = this.holder;
    this.holder.style.left = `${Math.max(4, Math.min(clientX, innerWidth - width - 4))}px`;
    this.holder.style.top = `${Math.max(4, Math.min(clientY, innerHeight - height - 4))}px`;
    this.holder.firstChild?.focus();
  }
  close(isBack) {
    if (this.holder.hidden) return;
    this.holder.hidden = true;
    if (isBack) this.from?.focus?.();
  }
  key(event) {
    const items = [...this.holder.children], at = items.indexOf(document.activeElement);
    const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1}[event.key];
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") this.close(true);
    else if (to !== undefined) items.at(to % items.length).focus();
    else if (event.key.length === 1 && event.key !== " ") items.find(item => item.querySelector("kbd").textContent === event.key)?.click();
    else return;
    event.preventDefault();
  }
  // The steps so far.
  draw() {
    const {transforms} = this.page;
    byId("steps").replaceChildren(...transforms.steps.map((step, at) => element("button", {type: "button", title: "Take this back", onclick: () => this.undo(at)}, `${transforms.text(step)} ✕`)));
  }
}
