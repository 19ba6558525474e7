// The call graph: functions below their callers, as `report -o graph.svg` draws it (call_graph.py).
//
//     main                        layer 0: nobody calls it
//      │ ╲
//      a  b                       as low as the longest way from the top
//      │ ╱
//      c                          an arc upwards belongs to a recursion, a loop to a function that calls itself
//
// Fewer arcs cross if a function moves to the mean place of those that it is connected with, several times.
const MOST_NODES = 60, LEAST_SHARE = 0.005, SWEEPS = 12;  // functions and arcs below this share are left out
const LINE = 15, GAP_X = 24, GAP_Y = 56, BOX_HIGH = 2 * LINE + 8, LOOP = 30, LONGEST_NAME = 42;
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

// The functions of each layer, from left to right.
const layersOf = (n, down) => {
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
  const layers = Array.from({length: layer.reduce((a, b) => Math.max(a, b), 0) + 1}, () => []);
  for (let i = 0; i < n; i++) layers[layer[i]].push(i);
  const place = new Float64Array(n);
  const settle = one => one.forEach((i, at) => { place[i] = (at + 0.5) / one.length; });
  layers.forEach(settle);
  for (let sweep = 0; sweep < SWEEPS; sweep++)
    for (const one of sweep % 2 ? layers : [...layers].reverse()) {
      const mean = new Map(one.map(i => [i, joined[i].reduce((sum, j) => sum + place[j], 0) / joined[i].length]));
      one.sort((a, b) => (mean.get(a) || place[a]) - (mean.get(b) || place[b]) || a - b);
      settle(one);
    }
  return layers;
};

class CallGraph {
  // page: {name(fn), short(fn), columns(): value columns, base(): the total, unit(), figures(fn): {self, all}, each by
  // column, arcs(): [{from, to, costs, calls}], rows: functions, colour(fn, costs): [fill, text], chosen(): function,
  // choose(fn)}
  constructor(page) {
    this.page = page;
    this.holder = byId("callgraph");
    this.zoomed = 1;
    this.holder.addEventListener("wheel", event => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.004));
    }, {passive: false});
    this.holder.addEventListener("keydown", event => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 1.25 : 0.8);
      else if (event.key === "0") this.fit();
      else return;
      event.preventDefault();
    });
  }
  // Finds functions and arcs, and their places.
  arrange() {
    const {page} = this, columns = page.columns(), base = Math.abs(page.base()) || 1;
    const size = costs => Math.max(0, ...columns.map(k => Math.abs(costs[k] || 0)));
    const known = [];
    for (let fn = 0; fn < page.rows; fn++) {
      const figures = page.figures(fn);
      if (size(figures.all) >= LEAST_SHARE * base) known.push({fn, ...figures});
    }
    known.sort((a, b) => size(b.all) - size(a.all) || size(b.self) - size(a.self) || a.fn - b.fn);
    this.nodes = known.slice(0, MOST_NODES);
    const at = new Map(this.nodes.map(({fn}, i) => [fn, i]));
    this.arcs = page.arcs().filter(({from, to, costs}) => at.has(from) && at.has(to) && size(costs) >= LEAST_SHARE * base)
      .map(arc => ({...arc, from: at.get(arc.from), to: at.get(arc.to), share: size(arc.costs) / base}))
      .sort((a, b) => a.from - b.from || b.share - a.share || a.to - b.to);
    for (const node of this.nodes) {
      node.lines = [this.cut(page.short(node.fn)), page.shares(node)];
      node.width = 16 + 6.6 * Math.max(...node.lines.map(line => line.length));
    }
    for (const {from, to} of this.arcs) if (from === to) this.nodes[from].loop = LOOP;
    const layers = layersOf(this.nodes.length, arcsDown(this.nodes.length, this.arcs));
    const widths = layers.map(layer => layer.reduce((sum, i) => sum + this.nodes[i].width + (this.nodes[i].loop || 0) + GAP_X, 0));
    this.width = Math.max(200, ...widths) + 16;
    this.height = layers.length * (BOX_HIGH + GAP_Y) - GAP_Y + 64;
    layers.forEach((layer, depth) => {
      let x = (this.width - widths[depth] + GAP_X) / 2;
      for (const i of layer) {
        const node = this.nodes[i];
        [node.x, node.y] = [x + node.width / 2, 32 + depth * (BOX_HIGH + GAP_Y)];
        x += node.width + (node.loop || 0) + GAP_X;
      }
    });
  }
  cut(name) {
    if (name.length > LONGEST_NAME) name = withoutArguments(name);
    return name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME / 2)}…${name.slice(1 - LONGEST_NAME / 2)}`;
  }
  draw() {
    const make = (tag, properties, ...children) => {
      const node = document.createElementNS(SVG, tag);
      for (const [name, value] of Object.entries(properties)) node.setAttribute(name, value);
      node.append(...children);
      return node;
    };
    const title = text => make("title", {}, text);
    const {page, nodes} = this, round = x => Math.round(x * 10) / 10;
    const arcs = [...this.arcs].sort((a, b) => a.share - b.share).map(arc => make("path", {
      d: this.path(nodes[arc.from], nodes[arc.to]), class: "arc", "stroke-width": round(0.6 + 5 * Math.min(1, arc.share)),
      "stroke-opacity": round(0.5 + 0.5 * Math.min(1, arc.share)), stroke: page.arcColour(arc.costs), "marker-end": "url(#to)",
    }, title(page.arcTitle(nodes[arc.from].fn, nodes[arc.to].fn, arc))));
    const boxes = nodes.map(node => {
      const [fill, text] = page.colour(node.fn, node.all), isChosen = node.fn === page.chosen();
      const box = make("g", {class: isChosen ? "node chosen" : "node", tabindex: "0", role: "button", "aria-pressed": isChosen},
        title(page.title(node)),
        make("rect", {x: round(node.x - node.width / 2), y: node.y, width: round(node.width), height: BOX_HIGH, rx: 4, fill}),
        ...node.lines.map((line, i) => make("text", {x: round(node.x), y: node.y + LINE * (i + 1) + 1, fill: text}, line)));
      box.addEventListener("click", () => page.choose(node.fn));
      box.addEventListener("keydown", event => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        page.choose(node.fn);
        this.holder.querySelector(".chosen")?.focus();  // the box that had the focus is gone
      });
      return box;
    });
    const head = make("marker", {id: "to", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto"},
      make("path", {d: "M0 0L8 4L0 8z", class: "head"}));
    this.picture = make("svg", {viewBox: `0 0 ${round(this.width)} ${this.height}`, role: "group", "aria-label": "Call graph"},
      make("defs", {}, head), ...arcs, ...boxes);
    this.holder.replaceChildren(this.picture);
    this.scale();
  }
  path(from, to) {
    if (from === to) {  // a loop at the right side
      const x = from.x + from.width / 2, y = from.y + BOX_HIGH / 2;
      return `M${x} ${y - 8}C${x + LOOP + 8} ${y - 26} ${x + LOOP + 8} ${y + 26} ${x} ${y + 8}`;
    }
    if (to.y > from.y) {
      const y = from.y + BOX_HIGH, middle = (to.y - y) / 2;
      return `M${from.x} ${y}C${from.x} ${y + middle} ${to.x} ${to.y - middle} ${to.x} ${to.y}`;
    }
    const side = Math.max(from.x, to.x) + 120;
    return `M${from.x} ${from.y}C${side} ${from.y - 40} ${side} ${to.y + BOX_HIGH + 40} ${to.x} ${to.y + BOX_HIGH}`;
  }
  // The whole width, as long as names can be read.
  scale() {
    const fits = Math.max(0.7, Math.min(1.25, (this.holder.clientWidth - 20) / this.width)) * this.zoomed;
    this.picture.setAttribute("width", Math.round(this.width * fits));
    this.picture.setAttribute("height", Math.round(this.height * fits));
  }
  zoom(factor) {
    const {holder} = this, before = this.zoomed;
    this.zoomed = Math.min(6, Math.max(0.3, before * factor));
    const [x, y] = [holder.scrollLeft + holder.clientWidth / 2, holder.scrollTop + holder.clientHeight / 2];
    this.scale();
    holder.scrollLeft = x * this.zoomed / before - holder.clientWidth / 2;
    holder.scrollTop = y * this.zoomed / before - holder.clientHeight / 2;
  }
  fit() {
    this.zoomed = 1;
    this.scale();
  }
}
