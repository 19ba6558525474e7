// What the page writes to files: the picture that is seen as SVG or PNG, the table as CSV or Markdown, and the stacks that are
// seen as folded stacks or speedscope's JSON.

const save = (name, type, parts) => {
  const link = element("a", {download: name, href: URL.createObjectURL(new Blob(parts, {type}))});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};
const xmlText = text => String(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd").replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);

// Has the methods of a canvas that Flame uses, and writes SVG.
class SvgPen {
  constructor(pen) {
    this.measure = pen;
    this.shapes = [];
    [this.fillStyle, this.strokeStyle, this.globalAlpha, this.lineWidth] = ["#000", "#000", 1, 1];
  }
  setTransform() { /* pixels */ }
  clearRect() { this.shapes = []; }
  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  box(x, y, width, height, paint) {
    const [left, top, wide, high] = [x, y, width, height].map(n => Math.round(100 * n) / 100);
    if (wide > 0) this.shapes.push(`<rect x="${left}" y="${top}" width="${wide}" height="${high}" ${paint}${this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""}/>`);
  }
  fillRect(x, y, width, height) { this.box(x, y, width, height, `fill="${xmlText(this.fillStyle)}"`); }
  strokeRect(x, y, width, height) { this.box(x, y, width, height, `fill="none" stroke="${xmlText(this.strokeStyle)}" stroke-width="${this.lineWidth}"`); }
  fillText(text, x, y) { this.shapes.push(`<text x="${Math.round(100 * x) / 100}" y="${y}" fill="${xmlText(this.fillStyle)}">${xmlText(text)}</text>`); }
  svg(width, height, back) {
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="12" dominant-baseline="central">\n` +
      `<rect width="100%" height="100%" fill="${xmlText(back)}"/>\n${this.shapes.join("\n")}\n</svg>\n`;
  }
}

// page: {head, state, flame, graph, treemap, view, table, events, unit, nameOf, texts, fileOf(fn), lineOf(fn), objectOf(fn), rowFigure, calls(fn),
// isInclusiveKnown, shownColumns, name: of the profile}
const exporter = page => {
  const {head, state, flame, graph, view, table, nameOf} = page;
  const back = () => getComputedStyle(document.documentElement).getPropertyValue("--back");
  const isGraph = () => state.order === "graph";

  // ---- pictures

  // what is drawn on a canvas
  const drawn = () => state.order === "treemap" ? page.treemap : flame;
  const canvasSvg = () => {
    const one = drawn(), {pen} = one, svg = new SvgPen(pen);
    one.pen = svg;
    try {
      one.paint(true);
    } finally {
      one.pen = pen;
    }
    const text = svg.svg(one.holder.clientWidth, parseFloat(one.canvas.style.height), back());
    one.paint();
    return text;
  };
  const graphSvg = () => {
    const copy = graph.picture.cloneNode(true), [, , width, height] = graph.shown();
    for (const [name, value] of [["xmlns", SVG], ["width", Math.ceil(width)], ["height", Math.ceil(height)]]) copy.setAttribute(name, value);
    return new XMLSerializer().serializeToString(copy);
  };
  const svg = () => isGraph() ? graphSvg() : canvasSvg();

  // The call graph on a canvas: the page may not load its own picture as an image.
  const graphCanvas = () => {
    const [x, y, width, height] = graph.shown(), scale = Math.min(2, 8000 / Math.max(width, height));
    const canvas = element("canvas", {width: Math.ceil(width * scale), height: Math.ceil(height * scale)}), pen = canvas.getContext("2d");
    pen.fillStyle = back();
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.setTransform(scale, 0, 0, scale, -x * scale, -y * scale);
    for (const shape of graph.picture.querySelectorAll(":scope > rect, :scope > path, :scope > text, .node rect, .node text")) {
      const of = (name, other) => shape.getAttribute(name) ?? other, number = name => Number(of(name, 0));
      [pen.fillStyle, pen.strokeStyle, pen.lineWidth] = [of("fill", "#000"), of("stroke", "#000"), number("stroke-width")];
      const alpha = name => { pen.globalAlpha = Number(of(name, 1)); };
      if (shape.tagName === "text") {
        pen.font = `${of("font-weight", 400)} ${of("font-size")}px system-ui, sans-serif`;
        pen.textAlign = of("text-anchor") === "start" ? "start" : "center";
        alpha("stroke-opacity");
        if (of("stroke", "")) pen.strokeText(shape.textContent, number("x"), number("y"));
        alpha("fill-opacity");
        pen.fillText(shape.textContent, number("x"), number("y"));
        continue;
      }
      const path = new Path2D(of("d", ""));
      if (shape.tagName === "rect") path.roundRect(number("x"), number("y"), number("width"), number("height"), number("rx"));
      alpha("fill-opacity");
      if (of("fill") !== "none") pen.fill(path);
      alpha("stroke-opacity");
      if (of("stroke", "")) pen.stroke(path);
    }
    return canvas;
  };
  const opaqueCanvas = () => {
    drawn().paint(true);
    const {width, height} = drawn().canvas, canvas = element("canvas", {width, height}), pen = canvas.getContext("2d");
    pen.fillStyle = back();
    pen.fillRect(0, 0, width, height);
    pen.drawImage(drawn().canvas, 0, 0);
    drawn().paint();
    return canvas;
  };
  const png = () => new Promise(done => { (isGraph() ? graphCanvas() : opaqueCanvas()).toBlob(done); });

  // ---- the table: its rows in their order, with exact figures

  const rows = () => {
    const {old, new: next} = state.event, of = `${state.event.name}${page.unit() ? ` ${page.unit()}` : ""}`;
    const kinds = [["self", "row self"], ...page.isInclusiveKnown() ? [["inclusive", "row inclusive"]] : []];
    const sides = head.compared ? [["old ", old], ["new ", next]] : [["", old]];
    const columns = kinds.flatMap(([title, name]) => sides.map(([side, k]) => [`${side}${title} (${of})`, fn => page.rowFigure(name, k, fn)]));
    if (!head.compared && page.has("row calls 0")) columns.push(["calls", fn => page.calls(fn)]);
    columns.push(["function", nameOf], ["file", page.fileOf], ["line", fn => page.lineOf(fn) || ""], ["object", page.objectOf]);
    return [columns.map(([title]) => title), ...table.kept.map(fn => columns.map(([, value]) => value(fn)))];
  };
  const csv = () => rows().map(row => row.map(cell => /[",\r\n]/.test(cell) ? `"${String(cell).replace(/"/g, '""')}"` : cell).join(",")).join("\n") + "\n";
  const markdown = () => {
    const [titles, ...cells] = rows(), isFigure = titles.map((_, k) => cells.every(row => typeof row[k] === "number" || row[k] === ""));
    const line = row => `| ${row.map(cell => typeof cell === "number" ? exact(cell) : String(cell).replace(/[\\`*_[\]<>|&~#]/g, "\\$&").replace(/\s+/g, " ")).join(" | ")} |`;
    return [line(titles), `| ${isFigure.map(right => right ? "---:" : "---").join(" | ")} |`, ...cells.map(line)].join("\n") + "\n";
  };

  // ---- stacks: [functions from the root, cost] within the zoomed part, or of the shown range of times

  const stacksOfTree = k => {
    const {tree} = view, found = [], [from, to] = state.order === "heavy" ? [flame.from, flame.to] : [0, 1], near = 1e-9 * (to - from);
    for (let i = 1; i < tree.n; i++) {
      if (!tree.self[k][i] || tree.x(i) < from - near || tree.x(i) + tree.width(i) > to + near) continue;
      const stack = [];
      for (let at = i; at > 0; at -= tree.up[at]) stack.push(tree.fn[at]);
      found.push([stack.reverse(), tree.self[k][i]]);
    }
    return found;
  };
  const stacksOfTimes = () => {
    const {boxes} = flame, [from, to] = flame.range || [flame.from, flame.to], length = head.time.length || 1, own = new Float64Array(boxes.fn.length), found = [];
    const share = i => boxes.first[boxes.thread[i]] < 0 ? 0 : Math.max(0, Math.min(boxes.begin[i] + boxes.duration[i], to * length) - Math.max(boxes.begin[i], from * length));
    for (let i = boxes.fn.length - 1; i >= 0; i--) {
      const time = share(i), above = boxes.parents[i];
      own[i] += time;
      if (above >= 0) own[above] -= time;
    }
    for (let i = 0; i < own.length; i++) {
      const cost = Math.round(own[i] * page.perTick);
      if (cost <= 0) continue;
      const stack = [];
      for (let at = i; at >= 0; at = boxes.parents[at]) stack.push(boxes.fn[at]);
      found.push([stack.reverse(), cost]);
    }
    return found;
  };
  const stacks = k => flame.boxes.stacks ? flame.boxes.stacks(flame.range || [flame.from, flame.to]) : flame.boxes.isTimed ? stacksOfTimes() : stacksOfTree(k);
  const folded = () => {
    // as fastprof's writer: no name is taken for another, a count or a comment
    const name = fn => nameOf(fn).replace(/;/g, ":").replace(/\s+/g, " ").trim() || "[unknown]";
    const textOf = stack => stack.map(name).join(";").replace(/^#/, "_#").replace(/ (?=[\d.]+$)/, "_"), sums = new Map();
    const sides = page.shownColumns();
    sides.forEach((k, side) => {
      for (const [stack, cost] of stacks(k)) {
        const text = textOf(stack);
        if (!sums.has(text)) sums.set(text, sides.map(() => 0));
        sums.get(text)[side] += cost;
      }
    });
    return [...sums].map(([text, costs]) => `${text} ${costs.join(" ")}\n`).join("");
  };
  const speedscope = () => {
    const frames = [], known = new Map(), k = state.event.new >= 0 ? state.event.new : state.event.old;
    const frame = fn => {
      if (!known.has(fn)) {
        const [file, line] = fn === NONE ? [] : [page.fileOf(fn), page.lineOf(fn)];
        known.set(fn, frames.push({name: nameOf(fn), ...file ? {file} : {}, ...file && line ? {line} : {}}) - 1);
      }
      return known.get(fn);
    };
    const all = stacks(k).filter(([, cost]) => cost > 0), [factor, scales] = UNITS.get(page.unit().toLowerCase()) || [1, null];
    const weights = all.map(([, cost]) => scales ? cost * factor : cost);
    return JSON.stringify({
      $schema: "https://www.speedscope.app/file-format-schema.json", exporter: head.made_by, name: head.title, shared: {frames},
      profiles: [{type: "sampled", name: state.event.name, unit: scales === TIME ? "nanoseconds" : scales === BYTES ? "bytes" : "none", startValue: 0,
        endValue: weights.reduce((a, b) => a + b, 0), samples: all.map(([stack]) => stack.map(frame)), weights}],
    });
  };

  // The files by their buttons: [title, suffix, type, content, is it of the picture]
  const kinds = [
    ["SVG", "svg", "image/svg+xml", svg, true], ["PNG", "png", "image/png", png, true], ["CSV", "csv", "text/csv", csv], ["Markdown", "md", "text/markdown", markdown],
    ["Folded", "folded", "text/plain", folded], ["speedscope", "speedscope.json", "application/json", speedscope],
  ];
  const says = {svg: "The picture that is seen, all rows of it", png: "The picture that is seen, all rows of it", csv: "The rows of the table with exact figures",
    md: "The rows of the table", folded: "The stacks that are seen, as folded stacks", "speedscope.json": "The stacks that are seen, for speedscope"};
  byId("exports").replaceChildren(...kinds.map(([title, suffix, type, content, isPicture]) => element("button", {
    type: "button", title: says[suffix], "data-kind": suffix, ...isPicture ? {class: "picture"} : {},
    onclick: async () => save(`${(head.title.replace(/[^\w.-]+/g, "-") || "profile").slice(0, 80)}.${suffix}`, type, [await content()]),
  }, title)));
  return Object.fromEntries(kinds.map(([, suffix, , content]) => [suffix, content]));
};
