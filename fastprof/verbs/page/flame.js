// Draws boxes: contexts below their callers, or calls in time order.
//
// Neighbours narrower than a pixel are drawn as one box, a run, and so are their callees; no row shows a gap where functions are:
//
//     main                               main
//     work          |a|b|c|d|    ->      work          |many   |
//     leaf          |e|f|                leaf          |many|
//
// So the number of boxes follows what is visible, not the size of the profile.
const ROW = 19;  // pixels
const AXIS = 22;  // the height of the time axis, and of a thread's title

// A box is {x, width, row, id, fn}; x and width are shares of everything.  A run also has the contexts or calls in it,
// `many`, and the `range` that a click zooms to; its id is negative.
const runId = first => -2 - first;
const sumOf = (box, figures) => (box.many || [box.id]).reduce((sum, i) => sum + figures[i], 0);

// The boxes of a tree.
class TreeBoxes {
  constructor(tree) {
    this.tree = tree;
    this.rows = tree.deepest + 1;
    this.top = 0;
    this.titles = [];
  }
  visible(from, to, least) {
    const {x, width, child, children, depth, fn} = this.tree;
    const found = [], stack = [0];
    while (stack.length) {
      const i = stack.pop();
      found.push({x: x[i], width: width[i], row: depth[i], id: i, fn: fn[i]});
      let run = [];
      const end = () => {
        if (run.length === 1) stack.push(run[0]);
        else if (run.length) this.addRun(found, run);
        run = [];
      };
      for (let c = child[i]; c < child[i + 1]; c++) {
        const j = children[c];
        if (!width[j] || x[j] >= to || x[j] + width[j] <= from) continue;
        if (width[j] < least) run.push(j);
        else {
          end();
          stack.push(j);
        }
      }
      end();
    }
    return found;
  }
  addRun(found, many) {
    const {x, width, child, children, depth} = this.tree;
    const left = x[many[0]];
    let row = depth[many[0]], range;
    while (many.length) {
      let all = 0, most = 0, n = 0;
      for (let m = 0; m < many.length; m++) {
        const i = many[m];
        all += width[i];
        most += child[i + 1] - child[i];
      }
      range ??= [left, left + all];
      found.push({x: left, width: all, row: row++, id: runId(many[0]), fn: NONE, many, range});
      const below = new Uint32Array(most);
      for (let m = 0; m < many.length; m++) {
        const i = many[m];
        for (let c = child[i]; c < child[i + 1]; c++) {
          below[n] = children[c];
          if (width[children[c]]) n++;
        }
      }
      many = below.subarray(0, n);
    }
  }
  cost(box, k) { return sumOf(box, this.tree.total[k]); }
  matches(box, matches) { return box.many ? box.many.some(i => matches[this.tree.fn[i]]) : matches[box.fn]; }
  fnOf(i) { return this.tree.fn[i]; }
  range(i) { return [this.tree.x[i], this.tree.x[i] + this.tree.width[i]]; }
  row(i) { return this.tree.depth[i]; }
  parent(i) { return i ? this.tree.parent[i] : -1; }
  firstChild(i) { return this.tree.child[i] < this.tree.child[i + 1] ? this.tree.children[this.tree.child[i]] : -1; }
  sibling(i, step) {
    if (!i) return -1;
    const {parent, child, children} = this.tree, above = parent[i];
    const at = children.indexOf(i, child[above]) + step;
    return at >= child[above] && at < child[above + 1] ? children[at] : -1;
  }
}

// The calls of one thread or of all, each thread below the one before.
class TimeBoxes {
  // isShown: of a thread's name; folded: names of those of which only the title is shown; isKept: of a function, others
  // are faint and do not count
  constructor(data, isShown, folded, isKept) {
    const {column, head} = data;
    this.isKept = isKept;
    this.isTimed = true;
    this.time = head.time;
    this.thread = column("call thread");
    this.fn = column("call function");
    this.depth = column("call depth");
    const steps = column("call begin"), begin = this.begin = new Float64Array(steps.length);
    for (let i = 0; i < steps.length; i++) begin[i] = steps[i] + (i && this.thread[i] === this.thread[i - 1] ? begin[i - 1] : 0);
    this.duration = column("call duration");
    this.titles = [];
    this.first = new Float64Array(head.time.threads.length);
    this.top = AXIS;
    let row = 0;
    const deepest = new Float64Array(head.time.threads.length).fill(-1);
    for (let i = 0; i < this.fn.length; i++) deepest[this.thread[i]] = Math.max(deepest[this.thread[i]], this.depth[i]);
    head.time.threads.forEach((name, t) => {
      this.first[t] = -1;
      if (deepest[t] < 0 || !isShown(name)) return;
      const isFolded = folded.has(name);
      this.titles.push([row, name, `${isFolded ? "▸" : "▾"} ${name}`]);
      if (!isFolded) this.first[t] = row + 1;
      row += isFolded ? 1 : deepest[t] + 2;
    });
    this.rows = row;
    this.parents = new Int32Array(this.fn.length).fill(-1);
    const open = [];
    for (let i = 0; i < this.fn.length; i++) {
      if (i && this.thread[i] !== this.thread[i - 1]) open.length = 0;
      open.length = Math.min(open.length, this.depth[i]);
      this.parents[i] = this.depth[i] && open[this.depth[i] - 1] !== undefined ? open[this.depth[i] - 1] : -1;
      open[this.depth[i]] = i;
    }
  }
  visible(from, to, least) {
    const length = this.time.length || 1, found = [], runs = new Map();
    const end = row => {
      const run = runs.get(row);
      if (run) run.width = run.range[1] - run.x;
      if (run?.many.length === 1) Object.assign(run, {id: run.many[0], fn: this.fn[run.many[0]], many: undefined});
      runs.delete(row);
    };
    for (let i = 0; i < this.fn.length; i++) {
      const first = this.first[this.thread[i]];
      if (first < 0) continue;
      const x = this.begin[i] / length, width = this.duration[i] / length;
      if (x > to || x + width < from) continue;
      const row = first + this.depth[i], run = runs.get(row);
      if (run && width < least && x < run.range[1] + least) {
        run.many.push(i);
        run.range[1] = Math.max(run.range[1], x + width);
        continue;
      }
      end(row);
      if (width < least) {
        runs.set(row, {x, width, row, id: runId(i), fn: NONE, many: [i], range: [x, x + width]});
        found.push(runs.get(row));
      } else found.push({x, width, row, id: i, fn: this.fn[i]});
    }
    for (const row of [...runs.keys()]) end(row);
    return found;
  }
  matches(box, matches) { return box.many ? box.many.some(i => matches[this.fn[i]]) : matches[box.fn]; }
  fnOf(i) { return this.fn[i]; }
  isFaint({fn, many}) { return many ? !many.some(i => this.isKept(this.fn[i])) : !this.isKept(fn); }
  // Self and inclusive time and calls of the first `n` functions from one point to another, in ticks: the self time of
  // kept functions, in them and in their callers.
  within([from, to], n) {
    const length = this.time.length || 1, {begin, duration, fn, parents} = this;
    const found = {own: new Float64Array(n), all: new Float64Array(n), calls: new Float64Array(n), sum: 0, n: 0};
    const share = i => Math.min(begin[i] + duration[i], to * length) - Math.max(begin[i], from * length);
    const own = new Float64Array(fn.length), all = new Float64Array(fn.length);
    for (let i = fn.length - 1; i >= 0; i--) {  // callees before callers
      const time = this.first[this.thread[i]] < 0 ? -1 : share(i), above = parents[i];
      if (time < 0) continue;
      const isKept = this.isKept(fn[i]), self = isKept ? time + own[i] : 0;
      all[i] += self;
      if (above >= 0) {
        own[above] -= time;
        all[above] += all[i];
      } else found.sum += all[i];
      found.n += isKept;
      if (fn[i] >= n) continue;
      let outer = above;
      while (outer >= 0 && fn[outer] !== fn[i]) outer = parents[outer];
      found.own[fn[i]] += self;
      found.calls[fn[i]] += isKept;
      if (outer < 0) found.all[fn[i]] += all[i];
    }
    return found;
  }
  range(i) {
    const length = this.time.length || 1;
    return [this.begin[i] / length, (this.begin[i] + this.duration[i]) / length];
  }
  row(i) { return this.first[this.thread[i]] + this.depth[i]; }
  parent(i) { return this.parents[i]; }
  firstChild(i) { return i + 1 < this.fn.length && this.parents[i + 1] === i ? i + 1 : -1; }
  sibling(i, step) {
    for (let j = i + step; j >= 0 && j < this.fn.length && this.thread[j] === this.thread[i]; j += step) {
      if (this.depth[j] < this.depth[i]) return -1;
      if (this.depth[j] === this.depth[i]) return j;
    }
    return -1;
  }
}

class Flame {
  // view: {label(fn, id), colour(box), tint, chosen: function or -1, marks(from, to, most)}
  constructor(view, on) {
    this.view = view;
    this.on = on;
    this.holder = byId("flame");
    this.canvas = byId("canvas");
    this.pen = this.canvas.getContext("2d");
    this.from = 0;
    this.to = 1;
    this.flipped = false;
    this.hovered = this.focused = -1;
    this.drawn = [];
    this.zooms = [];
    this.range = null;  // from one point in time to another, as shares of everything
    this.pending = this.isDragged = false;
    this.holder.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.holder);
    this.canvas.addEventListener("mousemove", event => this.hover(this.at(event)));
    this.canvas.addEventListener("mouseleave", () => this.hover(null));
    this.canvas.addEventListener("mousedown", event => this.press(event));
    this.canvas.addEventListener("click", event => {
      const title = this.titleAt(event);
      if (this.isDragged) this.isDragged = false;
      else if (title) this.on.fold([title]);
      else this.click(this.at(event));
    });
    this.canvas.addEventListener("wheel", event => this.wheel(event), {passive: false});
    this.holder.addEventListener("keydown", event => this.key(event));
  }
  show(boxes, isSameView = false) {
    this.boxes = boxes;
    this.laid = null;
    this.hovered = this.focused = -1;
    if (!isSameView) {
      this.zooms = [];
      [this.from, this.to] = [0, 1];
      requestAnimationFrame(() => this.scrollHome());
    }
    this.draw();
  }
  // Scrolls to the first row, or to the function of a sandwich.
  scrollHome() {
    const {holder, boxes} = this, row = boxes.root && !boxes.isInverted ? boxes.root.row : 0;
    if (this.flipped) holder.scrollTop = holder.scrollHeight;
    else holder.scrollTop = row ? this.y(row, 0) - holder.clientHeight / 2 : 0;
  }
  // The canvas covers only the visible part, because browsers limit its size; scrolling redraws it.
  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }
  y(row, all) { return this.flipped ? all - (row + 1) * ROW : this.boxes.top + row * ROW; }
  paint() {
    const {boxes, pen, canvas, view} = this;
    if (!boxes) return;
    this.holder.style.height = `min(52vh, ${boxes.top + boxes.rows * ROW + 4}px)`;
    const width = this.holder.clientWidth, height = this.holder.clientHeight;
    const all = Math.max(height, boxes.top + boxes.rows * ROW + 2);
    byId("height").style.height = `${all}px`;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const style = getComputedStyle(document.documentElement);
    const front = style.getPropertyValue("--front"), soft = style.getPropertyValue("--soft");
    const back = style.getPropertyValue("--back"), accent = style.getPropertyValue("--accent");
    const tint = style.getPropertyValue("--tint");
    const scroll = this.holder.scrollTop, span = this.to - this.from, scale = width / span;
    this.drawn = [];
    for (const box of this.laidOut(scale)) {
      const {x, width: w, row, id, fn} = box;
      const y = this.y(row, all) - scroll;
      if (y + ROW < 0 || y > height) continue;
      const left = Math.max(0, (x - this.from) * scale), right = Math.min(width, (x + w - this.from) * scale);
      const wide = right - left, gap = wide > 3 ? 1 : 0;
      const [fill, text] = view.colour(box);
      pen.fillStyle = fill;
      // faint: a caller of what is zoomed into, or not of the chosen object
      pen.globalAlpha = boxes.isTimed && boxes.isFaint(box) ? 0.3 : w > span * 1.0001 && w < 1 ? 0.55 : 1;
      pen.fillRect(left, y, wide - gap, ROW - 1);
      if (fn === view.chosen && fn !== NONE && wide >= 6) {
        pen.fillStyle = tint;
        pen.globalAlpha = 0.6;
        pen.fillRect(left, y, wide - gap, ROW - 1);
      }
      pen.globalAlpha = 1;
      if (id === this.hovered || id === this.focused) this.frame(left, y, wide - gap, accent, 2);
      if (wide > 24) this.label(box.many ? `${exact(box.many.length)} small boxes` : view.label(fn, id), left, y, wide - gap, text);
      this.drawn.push({...box, x: left, y, w: wide});
    }
    if (this.range && boxes.isTimed) this.shade(width, height, back, accent);
    for (const [row, , name] of boxes.titles) {
      const y = this.y(row, all) - scroll;
      if (y + ROW < 0 || y > height) continue;
      this.label(name, 0, y, width, soft);
    }
    if (boxes.top) this.axis(width, soft, back);
    canvas.dataset.boxes = this.drawn.length;
    this.on.painted(this.drawn);
  }
  // Fades the area outside the range.
  shade(width, height, back, accent) {
    const {pen} = this, [left, right] = this.range.map(x => (x - this.from) / (this.to - this.from) * width);
    pen.fillStyle = back;
    pen.globalAlpha = 0.65;
    pen.fillRect(0, 0, Math.max(0, left), height);
    pen.fillRect(right, 0, Math.max(0, width - right), height);
    pen.globalAlpha = 1;
    pen.fillStyle = accent;
    for (const x of [left, right]) pen.fillRect(Math.round(x), 0, 1, height);
  }
  // Dragging selects a time range.
  press(event) {
    this.isDragged = false;
    if (!this.boxes.isTimed || event.button) return;
    const share = ({clientX}) => {
      const x = (clientX - this.canvas.getBoundingClientRect().left) / this.holder.clientWidth;
      return Math.min(1, Math.max(0, this.from + x * (this.to - this.from)));
    };
    const start = share(event);
    const move = now => {
      if (!this.isDragged && Math.abs(now.clientX - event.clientX) < 4) return;
      this.isDragged = true;
      this.range = [start, share(now)].sort((a, b) => a - b);
      this.draw();
    };
    const end = () => {
      removeEventListener("mousemove", move);
      removeEventListener("mouseup", end);
      if (this.isDragged) this.on.range(this.range);
    };
    addEventListener("mousemove", move);
    addEventListener("mouseup", end);
  }
  titleAt(event) {
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    if (y < this.boxes.top) return undefined;
    const row = Math.floor((y + this.holder.scrollTop - this.boxes.top) / ROW);
    return this.boxes.titles.find(([at]) => at === row)?.[1];
  }
  // The boxes of the visible range; hovering and scrolling do not change them.
  laidOut(scale) {
    const key = [this.from, this.to, scale].join();
    if (this.laid?.key !== key) this.laid = {key, boxes: this.boxes.visible(this.from, this.to, 1 / scale)};
    return this.laid.boxes;
  }
  frame(x, y, w, colour, line) {
    this.pen.strokeStyle = colour;
    this.pen.lineWidth = line;
    this.pen.strokeRect(x + line / 2, y + line / 2, Math.max(1, w - line), ROW - 1 - line);
  }
  // Cuts the end of text that does not fit.
  label(name, x, y, w, colour) {
    const {pen} = this, room = w - 8;
    let text = name.length > 400 ? name.slice(0, 400) : name;
    if (pen.measureText(text).width > room) text = text.replace(/^0x0+(?=[\da-f])/i, "0x");  // an address
    if (pen.measureText(text).width > room) {
      let fits = 0, not = text.length;
      while (not - fits > 1) {
        const middle = (fits + not) >> 1;
        if (pen.measureText(`${text.slice(0, middle)}…`).width <= room) fits = middle;
        else not = middle;
      }
      if (fits < 2) return;
      text = `${text.slice(0, fits)}…`;
    }
    pen.fillStyle = colour;
    pen.fillText(text, x + 4, y + ROW / 2);
  }
  axis(width, soft, back) {
    const {pen, view} = this;
    pen.fillStyle = back;
    pen.fillRect(0, 0, width, AXIS);
    pen.fillStyle = soft;
    for (const [share, text] of view.marks(this.from, this.to, Math.max(1, width / 110))) {
      const x = (share - this.from) / (this.to - this.from) * width;
      pen.fillRect(x, AXIS - 7, 1, 7);
      if (x + pen.measureText(text).width + 4 < width) pen.fillText(text, x + 4, AXIS / 2);
    }
  }
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    for (let i = this.drawn.length - 1; i >= 0; i--) {
      const d = this.drawn[i];
      if (x >= d.x && x < d.x + d.w && y >= d.y && y < d.y + ROW) return d;
    }
    return null;
  }
  hover(box) {
    const id = box ? box.id : -1;
    if (id === this.hovered) return;
    this.hovered = id;
    this.on.hover(box || (this.focused < 0 ? null : this.box(this.focused)));
    this.draw();
  }
  click(box) {
    if (!box) return;
    this.focused = box.many ? -1 : box.id;
    this.zoom(box.range || this.boxes.range(box.id), box.many ? box.row : this.boxes.row(box.id));
    this.on.choose(box.fn);
  }
  zoom([from, to], row) {
    if (to - from <= 0 || (from === this.from && to === this.to)) return;
    this.zooms.push([this.from, this.to]);
    [this.from, this.to] = [from, to];
    this.on.moved(true);
    if (!this.flipped) {  // keep its callees and some of its callers visible
      const y = this.y(row, 0), {scrollTop, clientHeight} = this.holder;
      if (y - scrollTop > clientHeight / 3) this.holder.scrollTop = y - this.boxes.top - 3 * ROW;
    }
    this.draw();
  }
  back() {
    [this.from, this.to] = this.zooms.pop() || [0, 1];
    this.on.moved(true);
    this.draw();
  }
  reset() {
    [this.from, this.to] = [0, 1];
    this.zooms = [];
    this.on.moved(true);
    this.draw();
  }
  wheel(event) {
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && !sideways) return;  // the page, or the box, scrolls
    event.preventDefault();
    const width = this.holder.clientWidth, span = this.to - this.from;
    if (event.ctrlKey) {
      const x = this.from + span * (event.clientX - this.canvas.getBoundingClientRect().left) / width;
      const next = Math.min(1, Math.max(1e-12, span * Math.exp(event.deltaY * 0.004)));
      this.move(x - (x - this.from) * next / span, next);
    } else this.move(this.from + span * (event.deltaX || event.deltaY) / width, span);
  }
  move(from, span) {
    this.from = Math.min(Math.max(0, from), 1 - span);
    this.to = this.from + span;
    this.on.moved(false);
    this.draw();
  }
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const {boxes} = this;
    const start = this.drawn.length ? this.drawn[0].id : -1;
    const at = this.focused >= 0 ? this.focused : start;
    const down = this.flipped ? "ArrowUp" : "ArrowDown", up = this.flipped ? "ArrowDown" : "ArrowUp";
    const steps = {
      [down]: () => boxes.firstChild(at), [up]: () => boxes.parent(at),
      ArrowLeft: () => boxes.sibling(at, -1), ArrowRight: () => boxes.sibling(at, 1),
    };
    if (steps[event.key] && at >= 0) this.focus(this.focused < 0 ? start : steps[event.key]());
    else if ((event.key === "Enter" || event.key === " ") && at >= 0) this.click(this.box(at));
    else if (boxes.isTimed && "wasd".includes(event.key)) this.steer(event.key);
    else if (boxes.isTimed && event.key === "c") this.on.fold(boxes.titles.map(([, name]) => name));
    else if (event.key === "Backspace") this.back();
    else if (event.key === "Home" || event.key === "0") this.reset();
    else if (event.key === "+" || event.key === "-") this.steer(event.key);
    else return;
    event.preventDefault();
  }
  // Zooms in or out, or moves left or right.
  steer(key) {
    const span = this.to - this.from;
    if (key === "w" || key === "+") this.move(this.from + span / 4, span / 2);
    else if (key === "s" || key === "-") this.move(this.from - span / 2, Math.min(1, span * 2));
    else this.move(this.from + (key === "d" ? span : -span) / 4, span);
  }
  box(id) { return this.drawn.find(d => d.id === id) || {id, fn: this.boxes.fnOf(id)}; }
  focus(id) {
    if (id < 0) return;
    this.focused = id;
    const all = Math.max(this.holder.clientHeight, this.boxes.top + this.boxes.rows * ROW + 2);
    const y = this.y(this.boxes.row(id), all), {scrollTop, clientHeight} = this.holder;
    if (y < scrollTop + this.boxes.top || y + ROW > scrollTop + clientHeight) this.holder.scrollTop = y - clientHeight / 2;
    this.on.hover(this.box(id));
    this.draw();
  }
}
