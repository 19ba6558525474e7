// The picture of a profile without calls: a rectangle for each function, as large as its self cost, within those of its file
// and its object.  Rectangles smaller than a few pixels are one, with their mean colour.
const TITLE = 17, LEAST_AREA = 9;  // pixels: the height of a group's title; square pixels of a rectangle

class Treemap {
  // page: {tree(): of contexts, levels: [of a function: its group], outermost first, name(fn), colour(box), chosen(): function,
  // hover(box, event, isNew), choose(fn)}
  constructor(page) {
    this.page = page;
    this.holder = byId("treemap");
    this.canvas = byId("treemap-canvas");
    this.pen = this.canvas.getContext("2d");
    this.measure ??= measured();
    this.drawn = [];
    this.zoomed = [];  // groups, outermost first
    new ResizeObserver(() => this.draw()).observe(this.holder);
    this.canvas.addEventListener("mousemove", event => this.hover(this.at(event), event));
    this.canvas.addEventListener("mouseleave", () => this.hover(null));
    this.canvas.addEventListener("click", event => this.click(this.at(event)));
    this.holder.addEventListener("keydown", event => {
      if (event.key !== "Backspace") return;
      event.preventDefault();
      this.zoomed.pop();
      this.draw();
    });
  }
  // Groups and functions by cost: {title, cost, parts} and {fn, cost}.
  arrange() {
    const {page} = this, tree = page.tree(), costs = new Map();
    for (let i = 1; i < tree.n; i++) if (tree.own[i] && tree.fn[i] !== NONE) costs.set(tree.fn[i], (costs.get(tree.fn[i]) || 0) + tree.own[i]);
    const divided = (parts, level) => {
      if (level === page.levels.length) return parts.sort((a, b) => b.cost - a.cost || a.fn - b.fn);
      const groups = new Map();
      for (const part of parts) {
        const title = page.levels[level](part.fn);
        if (!groups.has(title)) groups.set(title, {title, cost: 0, parts: []});
        const group = groups.get(title);
        group.cost += part.cost;
        group.parts.push(part);
      }
      for (const group of groups.values()) group.parts = divided(group.parts, level + 1);
      const found = [...groups.values()].sort((a, b) => b.cost - a.cost || (a.title < b.title ? -1 : 1));
      return found.length === 1 ? found[0].parts : found;  // a level with one group is no division
    };
    const parts = divided([...costs].map(([fn, cost]) => ({fn, cost})), 0);
    this.root = {title: "", parts, cost: parts.reduce((sum, part) => sum + part.cost, 0)};
    this.zoomed = [];
  }
  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }
  paint() {
    const {pen, canvas, holder} = this, width = holder.clientWidth, height = holder.clientHeight;
    if (!this.root || !width || !height) return;
    const ratio = window.devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
    [this.front, this.soft, this.line] = ["--front", "--soft", "--line"].map(name => style.getPropertyValue(name));
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    canvas.style.height = `${height}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.measure ??= measured();
    this.drawn = [];
    const shown = this.zoomed.at(-1) || this.root;
    this.fill(shown, 0, 0, width, height, this.zoomed.length > 0);
    for (const {fn, x, y, w, h} of this.drawn) {
      if (fn !== this.page.chosen() || fn === NONE || w < 4 || h < 4) continue;
      [pen.strokeStyle, pen.lineWidth] = [this.front, 2];
      pen.strokeRect(x + 1, y + 1, w - 2, h - 2);
    }
  }
  // A group: its title, if there is room, and its parts.
  fill(group, x, y, w, h, isTitled = true) {
    if (isTitled && group.title !== undefined && h > 2.5 * TITLE && w > 40) {
      this.drawn.push({group, fn: NONE, x, y, w, h: TITLE});
      this.pen.fillStyle = this.line;
      this.pen.fillRect(x, y, w - 1, TITLE - 1);
      this.text(this.titleOf(group), x, y + TITLE / 2, w, this.front);
      y += TITLE;
      h -= TITLE;
    }
    this.lay(group.parts, group.cost, x, y, w, h);
  }
  titleOf({title, parts}) {
    return `${title.slice(title.lastIndexOf("/", title.length - 2) + 1) || "(none)"} (${exact(this.count(parts))})`;
  }
  count(parts) { return parts.reduce((sum, part) => sum + (part.parts ? this.count(part.parts) : 1), 0); }
  // Rows of rectangles along the shorter side, each row as square as it can be.
  lay(parts, cost, x, y, w, h) {
    let from = 0;
    while (from < parts.length && w > 0.5 && h > 0.5 && cost > 0) {
      const area = w * h, side = Math.min(w, h), size = part => part.cost / cost * area;
      if (size(parts[from]) < LEAST_AREA) return this.rest(parts.slice(from), x, y, w, h);
      let to = from, sum = 0, worst = Infinity;
      while (to < parts.length) {  // until the row's worst rectangle gets longer
        const more = sum + size(parts[to]), largest = size(parts[from]), smallest = size(parts[to]);
        const next = Math.max(side * side * largest / (more * more), more * more / (side * side * smallest));
        if (to > from && (next > worst || smallest < LEAST_AREA)) break;
        [sum, worst] = [more, next];
        to++;
      }
      const thick = Math.min(sum / side, Math.max(w, h));
      let at = 0;
      for (const part of parts.slice(from, to)) {
        const long = size(part) / thick;
        if (w >= h) this.part(part, x, y + at, thick, long);
        else this.part(part, x + at, y, long, thick);
        at += long;
      }
      const rowCost = parts.slice(from, to).reduce((total, part) => total + part.cost, 0);
      if (w >= h) [x, w] = [x + thick, w - thick];
      else [y, h] = [y + thick, h - thick];
      cost -= rowCost;
      from = to;
    }
    return undefined;
  }
  part(part, x, y, w, h) {
    if (part.parts) this.fill(part, x, y, w, h);
    else this.box({fn: part.fn, cost: part.cost, own: 0.6}, x, y, w, h, this.page.name(part.fn));
  }
  // Those too small to be drawn.
  rest(parts, x, y, w, h) {
    const many = [], add = list => { for (const part of list) part.parts ? add(part.parts) : many.push(part.fn); };
    add(parts);
    const cost = parts.reduce((sum, part) => sum + part.cost, 0);
    this.box({fn: NONE, many, areFunctions: true, cost}, x, y, w, h, `${exact(many.length)} small ones`);
  }
  box(box, x, y, w, h, name) {
    const {pen} = this, [fill, text] = this.page.colour(box), gap = w > 3 && h > 3 ? 1 : 0;
    pen.fillStyle = fill;
    pen.fillRect(x, y, w - gap, h - gap);
    this.drawn.push({...box, x, y, w, h});
    if (w > 30 && h > 13) this.text(name, x, y + Math.min(h / 2, 10), w, text);
  }
  text(name, x, y, w, colour) {
    const {pen} = this, fits = text => this.measure(pen, text) <= w - 8;
    let most = name.length;
    if (!fits(name)) {
      let not = most;
      most = 0;
      while (not - most > 1) {
        const middle = (most + not) >> 1;
        if (fits(middleOf(name, middle))) most = middle;
        else not = middle;
      }
    }
    if (most < 3) return;
    pen.fillStyle = colour;
    pen.fillText(middleOf(name, most), x + 4, y);
  }
  at(event) {
    const {left, top} = this.canvas.getBoundingClientRect(), x = event.clientX - left, y = event.clientY - top;
    return this.drawn.findLast(d => x >= d.x && x < d.x + d.w && y >= d.y && y < d.y + d.h) || null;
  }
  hover(box, event) {
    const isNew = box !== this.hovered;
    this.hovered = box;
    this.page.hover(box && {...box, group: box.group && {title: this.titleOf(box.group), cost: box.group.cost}}, event, isNew);
  }
  // A title zooms to its group, or back; a function is selected.
  click(box) {
    if (!box) return;
    if (box.group) {
      if (this.zoomed.at(-1) === box.group) this.zoomed.pop();
      else this.zoomed.push(box.group);
      this.hovered = null;
      this.draw();
    } else if (box.fn !== NONE) this.page.choose(box.fn);
  }
  reset() {
    this.zoomed = [];
    this.draw();
  }
}
