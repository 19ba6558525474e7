// The call graph: functions below their callers, as `report -o graph.svg` draws it (call_graph.py).
//
//     main                        layer 0: nobody calls it
//      │ ╲
//      a  b                       as low as the longest way from the top
//      │ ╱
//      c                          an arc upwards belongs to a recursion, a loop to a function that calls itself
//
// A function that nobody calls is just above the first one that it calls.  Fewer arcs cross if a function moves to the mean
// place of those that it is connected with, several times.  At first as many functions are shown as can be read.
const MOST_NODES = 60, LEAST_SHARE = 0.005, SWEEPS = 12;  // functions and arcs below this share are left out
const FEWER = [MOST_NODES, 48, 38, 30, 24, 18, 12];  // functions
const GAP_X = 22, GAP_Y = 36, LOOP = 30, LONGEST_NAME = 34, SMALLEST = 12, LARGEST = 22;  // pixels; of fonts
const ON_ARC = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82];  // places of a label
const LEAST_TEXT = 9, READABLE = LEAST_TEXT / SMALLEST;  // pixels; the scale at which the smallest font of a box has them
const THICK = 0.15, ON_THICK = 64;  // an arc of this share hides text below it; points of it that a text must not touch
const arcWidth = share => 0.6 + 7 * Math.min(1, share);  // of an arc
const SVG = "http://www.w3.org/2000/svg";

// The arcs that lead downwards: those to a function that is on the way here lead upwards.
const arcsDown = (n, arcs) => {
  const out = Array.from({length: n}, () => []), called = new Set();
  for (const arc of arcs) if (arc.from !== arc.to) {
    out[arc.from].push(arc);
    called.add(arc.to);
  }
  const down = [], state = new Uint8Array(n);  // 0: not visited, 1: on the way, 2: done
  const roots = [...out.keys()].sort((a, b) => called.has(a) - called.has(b) || a - b);
  for (const root of roots) {
    if (state[root]) continue;
    state[root] = 1;
    const way = [[root, 0]];
    while (way.length) {
      const step = way.at(-1), arc = out[step[0]][step[1]++];
      if (!arc) {
        state[step[0]] = 2;
        way.pop();
      } else if (state[arc.to] !== 1) {
        down.push(arc);
        if (!state[arc.to]) {
          state[arc.to] = 1;
          way.push([arc.to, 0]);
        }
      }
    }
  }
  return down;
};

// The functions of each layer, from left to right; those of a group (package, object) beside each other.
const layersOf = (n, down, groups) => {
  const layer = new Uint32Array(n), left = new Uint32Array(n), joined = Array.from({length: n}, () => []);
  for (const {from, to} of down) {
    left[to]++;
    joined[from].push(to);
    joined[to].push(from);
  }
  const ready = [...left.keys()].filter(i => !left[i]);
  for (const i of ready)  // which grows
    for (const {from, to} of down) if (from === i) {
      layer[to] = Math.max(layer[to], layer[i] + 1);
      if (!--left[to]) ready.push(to);
    }
  for (const i of layer.keys()) {  // those that nobody calls
    const callees = down.filter(({from}) => from === i).map(({to}) => layer[to]);
    if (!layer[i] && callees.length) layer[i] = Math.max(0, Math.min(...callees) - 1);
  }
  const layers = Array.from({length: layer.reduce((a, b) => Math.max(a, b), 0) + 1}, () => []);
  for (let i = 0; i < n; i++) layers[layer[i]].push(i);
  const place = new Float64Array(n);
  const settle = one => one.forEach((i, at) => { place[i] = (at + 0.5) / one.length; });
  layers.forEach(settle);
  for (let sweep = 0; sweep < SWEEPS; sweep++)
    for (const one of sweep % 2 ? layers : [...layers].reverse()) {
      const mean = new Map(one.map(i => [i, joined[i].reduce((sum, j) => sum + place[j], 0) / joined[i].length]));
      const at = i => mean.get(i) || place[i], byGroup = new Map();
      for (const i of one) byGroup.set(groups[i], [...byGroup.get(groups[i]) || [], at(i)]);
      const middle = i => byGroup.get(groups[i]).reduce((sum, x) => sum + x, 0) / byGroup.get(groups[i]).length;
      one.sort((a, b) => middle(a) - middle(b) || (groups[a] < groups[b] ? -1 : groups[a] > groups[b] ? 1 : 0) || at(a) - at(b) || a - b);
      settle(one);
    }
  return layers;
};

class CallGraph {
  // page: {short(fn), columns(): value columns, base(): the total, figures(fn): {self, all}, each by column, groupOf(fn):
  // object or package, arcs(fns): calls between functions, [{from, to, costs, calls}], rows: functions, colour(fn, node): [fill, text], arcColour(costs),
  // title(node), arcTitle(from, to, arc), arcLabel(arc), shares(node), chosen(): function, choose(fn)}
  constructor(page) {
    this.page = page;
    this.holder = byId("callgraph");
    this.seen = null;  // the part of the picture that is shown: [x, y, width, height]; null: all
    this.isWhole = false;  // all functions, even if they are too small to be read
    this.pen = document.createElement("canvas").getContext("2d");
    this.holder.addEventListener("wheel", event => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.002), event);
    }, {passive: false});
    this.holder.addEventListener("pointerdown", event => this.press(event));
    this.holder.addEventListener("keydown", event => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
      if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 1.25 : 0.8);
      else if (event.key === "0") this.fit();
      else if (step) this.move(step[0] * this.shown()[2] / 10, step[1] * this.shown()[3] / 10);
      else return;
      event.preventDefault();
    });
  }
  // Finds functions and arcs, and their places: as many as can be read.
  arrange() {
    const {clientWidth: width, clientHeight: height} = this.holder;
    for (const most of this.isWhole || !width ? [MOST_NODES] : FEWER) {
      this.put(most);
      if (Math.min(width / this.width, height / this.height) >= READABLE) break;
    }
    this.scale();
  }
  put(most) {
    const {page} = this, columns = page.columns(), base = Math.abs(page.base()) || 1;
    const size = costs => Math.max(0, ...columns.map(k => Math.abs(costs[k] || 0)));
    const known = [];
    for (let fn = 0; fn < page.rows(); fn++) {
      const figures = page.figures(fn);
      if (size(figures.all) >= LEAST_SHARE * base) known.push({fn, ...figures});
    }
    known.sort((a, b) => size(b.all) - size(a.all) || size(b.self) - size(a.self) || a.fn - b.fn);
    this.most = Math.min(MOST_NODES, known.length);
    this.nodes = known.slice(0, most);
    const chosen = known.slice(most).find(({fn}) => fn === page.chosen());
    if (chosen) this.nodes[this.nodes.length - 1] = chosen;
    const at = new Map(this.nodes.map(({fn}, i) => [fn, i]));
    this.arcs = page.arcs(at).filter(({from, to, costs}) => at.has(from) && at.has(to) && size(costs) >= LEAST_SHARE * base)
      .map(arc => ({...arc, from: at.get(arc.from), to: at.get(arc.to), share: size(arc.costs) / base}))
      .sort((a, b) => a.from - b.from || b.share - a.share || a.to - b.to);
    for (const node of this.nodes) {  // the font grows with the cost, above all with a function's own
      node.font = SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(Math.min(1, 0.75 * size(node.self) / base + 0.25 * size(node.all) / base));
      node.group = page.groupOf(node.fn);
      node.lines = [nameThatFits(page.short(node.fn), text => text.length <= LONGEST_NAME), page.shares(node)];
      node.width = 14 + Math.max(...node.lines.map((line, i) => {
        this.pen.font = `${i ? "" : "600 "}${node.font}px system-ui, sans-serif`;
        return this.pen.measureText(line).width;
      }));
      node.high = 2.5 * node.font + 8;
    }
    for (const {from, to} of this.arcs) if (from === to) this.nodes[from].loop = LOOP + 44;  // with its label
    const layers = layersOf(this.nodes.length, arcsDown(this.nodes.length, this.arcs), this.nodes.map(({group}) => group));
    const widths = layers.map(layer => layer.reduce((sum, i) => sum + this.nodes[i].width + (this.nodes[i].loop || 0) + GAP_X, 0));
    const heights = layers.map(layer => Math.max(0, ...layer.map(i => this.nodes[i].high)));
    this.width = Math.max(200, ...widths) + 16;
    this.height = heights.reduce((sum, high) => sum + high + GAP_Y, 64 - GAP_Y);
    let y = 32;
    this.clusters = [];
    layers.forEach((layer, depth) => {
      let x = (this.width - widths[depth] + GAP_X) / 2, last;
      for (const i of layer) {
        const node = this.nodes[i];
        [node.x, node.y] = [x + node.width / 2, y];
        x += node.width + (node.loop || 0) + GAP_X;
        if (last?.group === node.group) last.members.push(node);
        else this.clusters.push(last = {group: node.group, members: [node]});
      }
      y += heights[depth] + GAP_Y;
    });
    this.clusters = this.clusters.filter(({group, members}) => group && members.length > 1);
    this.seen = null;
  }
  draw() {
    const make = (tag, properties, ...children) => {
      const node = document.createElementNS(SVG, tag);
      for (const [name, value] of Object.entries(properties)) node.setAttribute(name, value);
      node.append(...children);
      return node;
    };
    const title = text => make("title", {}, text);
    const {page, nodes} = this, round = x => Math.round(x * 10) / 10, style = getComputedStyle(document.documentElement);
    const [back, front, soft, line, accent] = ["--back", "--front", "--soft", "--line", "--accent"].map(name => style.getPropertyValue(name));
    const byShare = [...this.arcs].sort((a, b) => a.share - b.share);
    const arcs = byShare.map(arc => make("path", {
      d: this.path(nodes[arc.from], nodes[arc.to]), class: "arc", fill: "none", "stroke-width": round(arcWidth(arc.share)),
      "stroke-opacity": round(0.45 + 0.5 * Math.min(1, arc.share)), stroke: page.arcColour(arc.costs).replace("currentColor", soft), "marker-end": "url(#to)",
    }, title(page.arcTitle(nodes[arc.from].fn, nodes[arc.to].fn, arc))));
    const labels = this.labels(byShare).map(({x, y, font, text, kind}) => make("text", {x: round(x), y: round(y), class: kind, fill: soft, stroke: back,
      "stroke-width": round(font / 3), "stroke-linejoin": "round", "paint-order": "stroke", "font-size": round(font), "text-anchor": "middle"}, text));
    const clusters = this.clusters.map(({members}) => {
      const [first, last] = [members[0], members.at(-1)], x = first.x - first.width / 2 - 8, high = Math.max(...members.map(node => node.high));
      return make("rect", {x: round(x), y: first.y - 15, width: round(last.x + last.width / 2 + 8 - x), height: round(high + 22), rx: 8, class: "cluster", fill: line, "fill-opacity": 0.45});
    });
    const boxes = nodes.map(node => {
      const [fill, text] = page.colour(node.fn, node), isChosen = node.fn === page.chosen();
      const box = make("g", {class: isChosen ? "node chosen" : "node", tabindex: "0", role: "button", "aria-pressed": isChosen, cursor: "pointer"},
        title(page.title(node)),
        make("rect", {x: round(node.x - node.width / 2), y: node.y, width: round(node.width), height: round(node.high), rx: 4, fill,
          stroke: isChosen ? front : soft, "stroke-width": isChosen ? 3 : 1}),
        ...node.lines.map((line, i) => make("text", {x: round(node.x), y: round(node.y + 4 + node.font * (1 + 1.15 * i)), fill: text, "font-size": round(node.font), "text-anchor": "middle",
          ...i ? {"fill-opacity": 0.85} : {"font-weight": 600}}, line)));
      box.dataset.fn = node.fn;
      box.addEventListener("click", () => { if (!this.isDragged) page.choose(node.fn); });
      box.addEventListener("keydown", event => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        page.choose(node.fn);
        this.holder.querySelector(".chosen")?.focus();  // the box that had the focus is gone
      });
      return box;
    });
    const head = make("marker", {id: "to", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto"},
      make("path", {d: "M0 0L8 4L0 8z", class: "head", fill: soft}));
    this.picture = make("svg", {role: "group", "aria-label": "Call graph", "font-family": "system-ui, sans-serif", style: `--focus: ${accent}`},
      make("defs", {}, head), ...clusters, ...arcs, ...labels, ...boxes);
    this.holder.replaceChildren(this.picture);
    this.scale();
  }
  // The titles of clusters and the labels of arcs: on a thin arc, beside a thick one.  None covers a box, a thick arc or the
  // text of a more expensive arc; without such a place, or where the picture is so small that it has no room, it is left out.
  labels(byShare) {
    const {nodes, pen, holder} = this, found = [];
    const least = LEAST_TEXT / Math.min(1, holder.clientWidth ? Math.min(holder.clientWidth / this.width, holder.clientHeight / this.height) : 1);
    const taken = nodes.map(({x, y, width, high}) => [x - width / 2, y, x + width / 2, y + high]);
    const curves = byShare.map(arc => ({arc, curve: this.curve(nodes[arc.from], nodes[arc.to])})).reverse();
    const point = (curve, t) => [0, 1].map(k => (1 - t) ** 3 * curve[k] + 3 * t * (1 - t) ** 2 * curve[2 + k] + 3 * t * t * (1 - t) * curve[4 + k] + t ** 3 * curve[6 + k]);
    const thick = curves.filter(({arc}) => arc.share >= THICK).flatMap(({arc, curve}) =>
      Array.from({length: ON_THICK + 1}, (_, i) => [...point(curve, i / ON_THICK), arcWidth(arc.share) / 2]));
    const isFree = ([left, top, right, bottom]) => !taken.some(other => left < other[2] && other[0] < right && top < other[3] && other[1] < bottom) &&
      !thick.some(([x, y, by]) => x > left - by && x < right + by && y > top - by - 2 && y < bottom + by + 2);
    const add = (kind, text, font, places) => {
      pen.font = `${font}px system-ui, sans-serif`;
      const half = pen.measureText(text).width / 2 + 1;
      for (const [x, y] of places(half)) {
        const box = [x - half, y - font / 2, x + half, y + font / 2];
        if (!isFree(box)) continue;
        taken.push(box);
        found.push({x, y: y + font / 3, font, text, kind});
        break;
      }
    };
    for (const {group, members} of this.clusters) {
      const left = members[0].x - members[0].width / 2 - 2, right = members.at(-1).x + members.at(-1).width / 2 + 2, y = members[0].y - 8;
      if (least < 15) add("title", middleOf(group.slice(group.lastIndexOf("/", group.length - 2) + 1), 40), least, half => [[left + half, y], [right - half, y], [(left + right) / 2, y]]);
    }
    for (const {arc, curve} of curves)
      add("label", this.page.arcLabel(arc), Math.max(least, 8 + 4 * Math.sqrt(Math.min(1, arc.share))), half => ON_ARC.flatMap(t => {
        const [x, y] = point(curve, t), away = arcWidth(arc.share) / 2 + 3, side = half + away;
        if (arc.from === arc.to) return [[Math.max(x, curve[0] + half + 2), y], [curve[0] + LOOP + side, y]];
        return arc.share < THICK ? [[x, y]] : [[x + side, y], [x - side, y], [x + side + 14, y], [x - side - 14, y], [x, y - away - 8], [x, y + away + 8]];
      }));
    return found;
  }
  path(from, to) {
    const [x, y, ...rest] = this.curve(from, to);
    return `M${x} ${y}C${rest.join(" ")}`;
  }
  // The points of a curve.
  curve(from, to) {
    if (from === to) {  // a loop at the right side
      const x = from.x + from.width / 2, y = from.y + from.high / 2;
      return [x, y - 8, x + LOOP + 8, y - 26, x + LOOP + 8, y + 26, x, y + 8];
    }
    if (to.y > from.y) {
      const y = from.y + from.high, middle = (to.y - y) / 2;
      return [from.x, y, from.x, y + middle, to.x, to.y - middle, to.x, to.y];
    }
    const side = Math.max(from.x, to.x) + 120;
    return [from.x, from.y, side, from.y - 40, side, to.y + to.high + 40, to.x, to.y + to.high];
  }
  // All of it, or the part that dragging and zooming have left.
  shown() { return this.seen || [0, 0, this.width, this.height]; }
  scale() {
    if (!this.picture) return;
    this.picture.setAttribute("viewBox", this.shown().map(x => Math.round(x * 10) / 10).join(" "));
  }
  move(x, y) {
    const [left, top, width, height] = this.shown();
    this.seen = [left + x, top + y, width, height];
    this.scale();
  }
  // Units of the picture in a pixel, and a point of the window in it.
  unit() {
    const [, , width, height] = this.shown();
    return Math.max(width / (this.holder.clientWidth || 1), height / (this.holder.clientHeight || 1));
  }
  point({clientX, clientY}) {
    const [left, top, width, height] = this.shown(), unit = this.unit(), box = this.holder.getBoundingClientRect();
    return [left + width / 2 + (clientX - box.left - box.width / 2) * unit, top + height / 2 + (clientY - box.top - box.height / 2) * unit];
  }
  zoom(factor, at) {
    const [left, top, width, height] = this.shown(), wanted = Math.min(3 * this.width, Math.max(this.width / 30, width / factor));
    const [x, y] = at ? this.point(at) : [left + width / 2, top + height / 2], by = wanted / width;
    this.seen = [x - (x - left) * by, y - (y - top) * by, wanted, height * by];
    this.scale();
  }
  press(event) {
    this.isDragged = false;
    if (event.button) return;
    const unit = this.unit();
    let {clientX: x, clientY: y} = event;
    const move = now => {
      if (!this.isDragged && Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) < 4) return;
      this.isDragged = true;
      this.move((x - now.clientX) * unit, (y - now.clientY) * unit);
      [x, y] = [now.clientX, now.clientY];
    };
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  }
  fit() {
    this.seen = null;
    this.scale();
  }
}
