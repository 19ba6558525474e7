// Draws boxes: contexts below their callers, or calls in time order.
//
// Neighbours narrower than a pixel are drawn as one box, a run, and so are their callees; no row shows a gap where functions are:
//
//     main                               main
//     work          |a|b|c|d|    ->      work          |many   |
//     leaf          |e|f|                leaf          |many|
//
// So the number of boxes follows what is visible, not the size of the profile.
const ROW = 19, LOWEST = 4, LOW = 8;  // pixels; rows of calls get lower, so that all threads are visible
const TALLEST = 16_000;  // pixels of a canvas
const HIGHER_THAN_PAGE = 1400;  // pixels of a picture that can be fitted to a printed page
const AXIS = 22;  // the height of the time axis, and of a thread's title

// To set the size of a canvas takes milliseconds, even if it is the same.
const resize = (canvas, width, height) => {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
};
// A box on the screen, in pixels.
class Drawn {
  constructor(box, x, y, w, h) {
    this.box = box;
    this.id = box.id;
    this.fn = box.fn;
    this.row = box.row;
    this.width = box.width;
    this.range = box.range;
    this.at = box.at;
    this.x = x;
    this.y = y;
    this.w = w;
    this.h = h;
  }
  get many() { return this.box.many; }
  get from() { return this.box.from; }
}

class Flame {
  // view: {label(fn, id), colour(box), coloured(): a text that changes with the colours, chosen: function or -1,
  // marks(from, to, most)}
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
    this.seen = {};  // when it was painted
    this.zooms = [];
    this.measure = measured();
    this.low = ROW;
    this.isEnlarged = false;
    this.range = null;  // from one point in time to another, as shares of everything
    this.pending = this.isDragged = false;
    this.minimap = new Minimap(this);
    this.holder.addEventListener("scroll", () => this.draw());
    new ResizeObserver(([{target}]) => { if (target.clientWidth !== this.seen.clientWidth || target.clientHeight !== this.seen.clientHeight) this.draw(); }).observe(this.holder);
    this.canvas.addEventListener("mousemove", event => this.hover(this.at(event), event));
    this.canvas.addEventListener("mouseleave", () => this.hover(null));
    for (const type of ["beforeprint", "afterprint"]) addEventListener(type, () => this.paint(type === "beforeprint"));
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
  y(row, all) {
    const {top, above} = this.boxes;
    if (above) return top + above[row] * ROW + (row - above[row]) * this.low;
    return this.flipped ? all - (row + 1) * ROW : top + row * ROW;
  }
  // The height of all rows.
  needed() { return this.y(this.boxes.rows, 0) + 2; }
  // The height of rows of calls.
  fitRows() {
    const {rows, above, top} = this.boxes, room = this.holder.clientHeight - top - 2;
    this.low = ROW;
    if (!above || this.isEnlarged || this.needed() <= this.holder.clientHeight) return;
    this.low = Math.min(ROW, Math.max(LOWEST, Math.floor((room - above[rows] * ROW) / Math.max(1, rows - above[rows]))));
  }
  // isWhole: all rows, for print, up to what browsers can draw.
  paint(isWhole = false) {
    const {boxes, pen, canvas, view} = this, width = this.holder.clientWidth;
    if (!boxes || !width) return;
    this.seen = {clientWidth: width, clientHeight: this.holder.clientHeight};
    this.fitRows();
    const needed = boxes.above ? this.needed() : boxes.top + boxes.rows * ROW + 2, height = isWhole ? Math.min(needed, TALLEST) : this.holder.clientHeight;
    const all = Math.max(height, needed);
    byId("height").style.height = !isWhole && all === height ? "100%" : `${isWhole ? height : all}px`;  // 100 %: no scrollbar while the window shrinks
    const ratio = window.devicePixelRatio || 1;
    resize(canvas, Math.round(width * ratio), Math.round(height * ratio));
    canvas.style.height = `${height}px`;
    canvas.style.maxHeight = isWhole && height < HIGHER_THAN_PAGE ? "85vh" : "";  // else the first page would be empty
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const style = getComputedStyle(document.documentElement);
    const front = style.getPropertyValue("--front"), soft = style.getPropertyValue("--soft");
    const back = style.getPropertyValue("--back"), accent = style.getPropertyValue("--accent");
    const scroll = isWhole ? 0 : this.holder.scrollTop, path = this.pathOf(this.focused), span = this.to - this.from, scale = width / span;
    this.drawn = [];
    const fills = new Map(), frames = [], tinted = [], labels = [];  // drawn by colour: a browser reads a colour each time that it is set
    for (const box of this.laidOut(scale)) {
      const {x, width: w, row, id, fn} = box;
      const y = this.y(row, all) - scroll, high = boxes.above ? this.low : ROW, thick = high > 6 ? high - 1 : high;
      if (y + high < 0 || y > height) continue;
      const least = w ? 0 : 1;  // pixels: a sample at the end has no duration
      const left = Math.max(0, Math.min(width - least, (x - this.from) * scale)), right = Math.max(left + least, Math.min(width, (x + w - this.from) * scale));
      const wide = right - left, gap = wide > 3 ? 1 : 0;
      const [fill, text] = view.colour(box);
      // faint: a caller of what is zoomed into, or not of the chosen object
      const alpha = boxes.isTimed && boxes.isFaint(box) ? 0.3 : w > span * 1.0001 && w < 1 ? 0.55 : 1;
      if (alpha < 1) {
        pen.fillStyle = fill;
        pen.globalAlpha = alpha;
        pen.fillRect(left, y, wide - gap, thick);
        pen.globalAlpha = 1;
      } else {
        let list = fills.get(fill);
        if (!list) fills.set(fill, list = []);
        list.push(left, y, wide - gap, thick);
      }
      if (fn === view.chosen && fn !== NONE && wide >= 4) {
        if (thick > LOW + 4) frames.push([left, y, wide - gap, front, wide < 9 ? 1 : 2, thick]);
        else tinted.push([left, y, wide - gap, thick]);  // a frame would cover it
      }
      if (path.has(id) && fn !== view.chosen && wide >= 4) frames.push([left, y, wide - gap, front, 1, thick]);
      if (id === this.hovered || id === this.focused) frames.push([left, y, wide - gap, accent, 2, thick]);
      const n = box.count ?? box.many?.length ?? 0;
      if (wide > 24 && high > 12) labels.push([n ? `${exact(n)} small boxes` : view.label(fn, id), left, y, wide - gap, text, high, n > 0]);
      this.drawn.push(new Drawn(box, left, y, wide, high));
    }
    for (const [fill, list] of fills) {
      pen.fillStyle = fill;
      for (let k = 0; k < list.length; k += 4) pen.fillRect(list[k], list[k + 1], list[k + 2], list[k + 3]);
    }
    pen.fillStyle = front;
    pen.globalAlpha = 0.45;
    for (const one of tinted) pen.fillRect(...one);
    pen.globalAlpha = 1;
    for (const one of frames) this.frame(...one);
    for (const one of labels) this.label(...one);
    if (boxes.lanes) boxes.lanes.draw({flame: this, y: row => this.y(row, all) - scroll, from: this.from, to: this.to, width, height, style: name => style.getPropertyValue(name)});
    if (this.range && boxes.isTimed) this.shade(width, height, back, accent);
    for (const [row, , name] of boxes.titles) {
      const y = this.y(row, all) - scroll;
      if (y + ROW < 0 || y > height) continue;
      this.label(name, 0, y, width, soft);
    }
    if (boxes.strips) this.drawBusy(scale, width, all, scroll, accent);
    if (boxes.top) this.axis(width, soft, back);
    canvas.dataset.boxes = this.drawn.length;
    this.minimap.draw();
    this.on.painted(this.drawn);
  }
  // A line below the names of collapsed threads, where they are in a call.
  drawBusy(scale, width, all, scroll, colour) {
    const {pen, boxes} = this;
    if (boxes.strips.busy?.scale !== scale) boxes.strips.busy = {scale, rows: boxes.busy(1 / scale)};
    pen.fillStyle = colour;
    for (const [row, found] of boxes.strips.busy.rows) {
      const y = this.y(row, all) - scroll + ROW - 4;
      for (let k = 0; k < found.length; k += 2) {
        const left = Math.max(0, (found[k] - this.from) * scale), right = Math.min(width, (found[k + 1] - this.from) * scale);
        if (right > left) pen.fillRect(left, y, Math.max(1, right - left), 3);
      }
    }
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
    const at = y + this.holder.scrollTop;
    return this.boxes.titles.find(([row]) => at >= this.y(row, 0) && at < this.y(row, 0) + ROW)?.[1];
  }
  // The boxes of the visible range; hovering and scrolling do not change them.
  laidOut(scale) {
    const {boxes, from, to} = this, key = [from, to, scale, this.narrowest()].join();
    if (from === 0 && to === 1) return this.whole(scale);
    if (boxes.part?.key !== key) boxes.part = {key, found: boxes.visible(from, to, this.narrowest() / scale)};
    return boxes.part.found;
  }
  // The width in pixels below which neighbours are one box: in low rows of calls two, as there are many rows.
  narrowest(boxes = this.boxes) { return boxes.above && this.low < LOW ? 2 : 1; }
  // All boxes at a width, also for the overview.
  whole(width, boxes = this.boxes) {
    const least = this.narrowest(boxes);
    if (boxes.all?.width !== width || boxes.all.least !== least) boxes.all = {width, least, found: boxes.visible(0, 1, least / width)};
    return boxes.all.found;
  }
  frame(x, y, w, colour, line, high) {
    this.pen.strokeStyle = colour;
    this.pen.lineWidth = line;
    this.pen.strokeRect(x + line / 2, y + line / 2, Math.max(1, w - line), Math.max(1, high - line));
  }
  // The box and its callers.
  pathOf(id) {
    const found = new Set();
    for (; id >= 0 && found.size < 65536; id = this.boxes.parent(id)) found.add(id);
    return found;
  }
  // isWhole: without it, if it does not fit
  label(name, x, y, w, colour, high = ROW, isWhole = false) {
    const {pen} = this, fits = text => this.measure(pen, text) <= w - 8;
    const text = isWhole ? fits(name) && name : nameThatFits(name, fits);
    if (!text) return;
    pen.fillStyle = colour;
    pen.fillText(text, x + 4, y + high / 2);
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
      if (x >= d.x && x < d.x + d.w && y >= d.y && y < d.y + d.h) return d;
    }
    return null;
  }
  // What a lane has at the pointer.
  laneAt(event) {
    const {boxes, canvas, holder} = this, box = canvas.getBoundingClientRect(), y = event.clientY - box.top + holder.scrollTop;
    const lane = event.clientY - box.top > AXIS && boxes.lanes?.all.find(({row, high}) => y >= this.y(row, 0) && y < this.y(row, 0) + high * ROW), span = this.to - this.from;
    return lane ? boxes.lanes.at(lane, this.from + span * (event.clientX - box.left) / holder.clientWidth, 3 * span / holder.clientWidth) : null;
  }
  // Shows what boxes.lanes found, in the middle if it is not seen.
  point(found) {
    const {boxes, holder} = this;
    if (!found?.lane) return;
    boxes.lanes.pointed = found.time === null ? null : found;
    const share = found.time / boxes.lanes.length, span = this.to - this.from, y = this.y(found.lane.row, 0);
    if (y < holder.scrollTop + boxes.top || y + 2 * ROW > holder.scrollTop + holder.clientHeight) holder.scrollTop = y - holder.clientHeight / 2;
    if (found.time !== null && (share < this.from || share > this.to)) this.move(share - span / 2, span);
    this.draw();
    const {left, top} = this.canvas.getBoundingClientRect(), x = found.time === null ? 0 : (share - this.from) / (this.to - this.from) * holder.clientWidth;
    this.on.hover(boxes.lanes.at(found.lane, found.time === null ? this.to : share, 1e-9), {clientX: left + x, clientY: top + y - holder.scrollTop + ROW}, true);
  }
  hover(box, event) {
    const part = !box && event ? this.laneAt(event) : null;
    if (part) {
      this.hovered = -1;
      this.on.hover(part, event, true);
      return;
    }
    const id = box ? box.id : -1, isNew = id !== this.hovered;
    this.hovered = id;
    this.on.hover(box, event, isNew);
    if (isNew) this.draw();
  }
  click(box) {
    if (!box) return;
    this.focused = box.many ? -1 : box.id;
    this.hovered = -1;
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
    else if (boxes.isTimed && event.key === "e") this.enlarge(!this.isEnlarged);
    else if (boxes.lanes && "np".includes(event.key)) this.point(boxes.lanes.step(event.key === "n" ? 1 : -1));
    else if (boxes.isTimed && event.key === "c") this.on.fold(boxes.titles.map(([, name]) => name));
    else if (event.key === "Backspace") this.back();
    else if (event.key === "Home" || event.key === "0") this.reset();
    else if (event.key === "+" || event.key === "-") this.steer(event.key);
    else return;
    event.preventDefault();
  }
  // Rows of calls as high as others, or as low as all threads need.
  enlarge(isEnlarged) {
    this.isEnlarged = isEnlarged;
    this.on.moved(true);
    this.draw();
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
    const all = Math.max(this.holder.clientHeight, this.boxes.above ? this.needed() : this.boxes.top + this.boxes.rows * ROW + 2);
    const y = this.y(this.boxes.row(id), all), {scrollTop, clientHeight} = this.holder;
    if (y < scrollTop + this.boxes.top || y + ROW > scrollTop + clientHeight) this.holder.scrollTop = y - clientHeight / 2;
    this.on.focus(this.box(id));
    this.draw();
  }
  // Selects the box of a function that costs most and scrolls to it.
  findWidest(fn) {
    const {tree, instances} = this.boxes;
    this.focused = -1;
    if (instances) for (const i of tree.of(fn)) if (tree.weight[i] > (this.focused < 0 ? 0 : tree.weight[this.focused])) this.focused = i;
    requestAnimationFrame(() => {
      const {holder, boxes} = this;
      if (this.focused < 0 || this.flipped || !boxes.instances) return;
      const y = this.y(boxes.row(this.focused), 0);
      if (y + ROW > holder.scrollTop + holder.clientHeight) holder.scrollTop = y - holder.clientHeight / 2;
    });
    this.draw();
  }
}
