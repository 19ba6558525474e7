// The colours of boxes in each colour mode, and the legend.
//
// A box has the hue of its group (package, object, file) or of its name; the larger the share of its cost that is its own,
// the stronger the colour.  The hues are those of Okabe and Ito, which people with any kind of colour vision can distinguish.
const HUES = [[0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [213, 94, 0], [86, 180, 233], [222, 206, 50], [120, 94, 240]];
const GREY = {light: ["#dfe2e7", "#4a505c"], dark: ["#3a3f49", "#c8cdd6"]};
const MATCH = {light: ["#c95fdc", "#1a001f"], dark: ["#a545b8", "#ffffff"]};
const STEPS = 6, SAMPLES = 24;  // strengths of a hue; boxes of a run that its colour is the mean of

const mixed = (rgb, other, share) => rgb.map((c, i) => Math.round(c * share + other[i] * (1 - share)));
const hexOf = ([r, g, b]) => `#${(1 << 24 | r << 16 | g << 8 | b).toString(16).slice(1)}`;
// Black or white, whichever has more contrast: the luminance of both is as far apart at 0.19 (WCAG).
const linear = c => c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4;
const textOn = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.19 ? "#111111" : "#ffffff";
const GREY_RGB = {light: [223, 226, 231], dark: [58, 63, 73]};
// by theme, hue and strength: the colour as RGB, and fill and text
const SHADES = {};
for (const [theme, back, least, most] of [["light", [255, 255, 255], 0.42, 0.92], ["dark", [22, 24, 29], 0.45, 0.82]])
  SHADES[theme] = HUES.map(hue => Array.from({length: STEPS}, (_, step) => {
    const rgb = mixed(hue, back, least + (most - least) * step / (STEPS - 1));
    return {rgb, fill: [hexOf(rgb), textOn(rgb)]};
  }));

const MEAN_SHADES = Object.fromEntries(Object.entries(SHADES).map(([theme, hues]) => [theme, hues.map(steps => steps[STEPS >> 1].rgb)]));

// page: {data, nameOf(fn), theme(): "light" or "dark", matches(): by function or null, isMatch(box), change(box): share,
// own(box): the share of the box's cost that is its own, functions(): of the parts of runs, unless those are functions}
class Colours {
  constructor(page) {
    this.page = page;
    const {head, column} = page.data, {texts} = head;
    const files = column("function file"), objects = column("function object");
    this.n = files.length;
    this.keyOf = {  // by kind: of a function
      package: fn => packageOf(page.nameOf(fn)),
      object: fn => texts[objects[fn]],
      file: fn => texts[files[fn]],
    };
    this.numberOf = {};  // by kind: of each function the number of its key, once that was needed
    this.keysOf = {};  // by kind: keys by number
    const isDivided = key => {  // into several groups
      let fn = 1;
      while (fn < page.data.functions && key(fn) === key(0)) fn++;
      return fn < page.data.functions;
    };
    this.kinds = [...head.compared ? ["change"] : [], "name", ...Object.keys(this.keyOf).filter(kind => isDivided(this.keyOf[kind]))];
    this.kind = this.kinds[0];
    this.hues = new Map();
    this.fills = new Map();  // of mean colours
    this.version = 0;  // grows when boxes get other colours
  }
  // Finds the groups of a kind.
  number(kind) {
    if (this.numberOf[kind]) return;
    const numbers = new Map(), of = this.numberOf[kind] = new Uint32Array(this.n), key = this.keyOf[kind];
    for (let fn = 0; fn < of.length; fn++) {
      const text = key(fn);
      if (!numbers.has(text)) numbers.set(text, numbers.size);
      of[fn] = numbers.get(text);
    }
    this.keysOf[kind] = [...numbers.keys()];
  }
  groups(kind) {
    this.number(kind);
    return {groupOf: this.numberOf[kind], keys: this.keysOf[kind]};
  }
  hueOfName(fn) {
    let hash = 7;
    for (const c of this.page.nameOf(fn).slice(0, 200)) hash = (hash * 31 + c.codePointAt(0)) >>> 0;
    return (hash >>> 3) % HUES.length;
  }
  // The kind of which several groups are seen and the hues reach for most boxes: package, object or file; else names.
  bestKind(tree) {
    if (this.kinds[0] === "change") return "change";
    const areas = this.areas(tree);
    let best = "name", most = -1;
    for (const kind of this.kinds.filter(kind => this.keyOf[kind])) {
      const costs = this.grouped(kind, areas), all = costs.reduce((sum, [, cost]) => sum + cost, 0) || 1;
      const covered = costs.slice(0, HUES.length).reduce((sum, [, cost]) => sum + cost, 0) / all;
      if (!(costs[0]?.[1] / all < 0.95) || covered <= most) continue;
      [best, most] = [kind, covered];
      if (covered > 0.85) break;
    }
    return best;
  }
  // The area of all boxes, by function.
  areas(tree) {
    if (this.areasOf?.weight === tree.weight) return this.areasOf.areas;
    const areas = new Float64Array(this.n), {n, fn, weight} = tree;
    for (let i = 1; i < n; i++) if (fn[i] !== NONE) areas[fn[i]] += weight[i];
    this.areasOf = {weight, areas};
    return areas;
  }
  // Groups and their areas, the largest first.
  grouped(kind, areas) {
    this.number(kind);
    const numbers = this.numberOf[kind], sums = new Float64Array(this.keysOf[kind].length);
    for (let fn = 0; fn < areas.length; fn++) sums[numbers[fn]] += areas[fn];
    return this.keysOf[kind].map((key, number) => [key, sums[number], number]).filter(([, sum]) => sum).sort((a, b) => b[1] - a[1]);
  }
  // The largest groups of a tree get distinct hues, the others grey.  of: what is shown; for the same the hues stay, so that
  // hiding a function changes no colour.
  arrange(tree, of) {
    const key = `${of}\n${this.kind}`;
    if (of !== undefined && key === this.arrangedFor) return;
    this.arrangedFor = key;
    this.hues = new Map();
    this.version++;
    if (!this.keyOf[this.kind]) {
      this.hueTable = this.hueOfNames ??= Int8Array.from({length: this.n}, (_, fn) => this.hueOfName(fn));
      return;
    }
    const groups = this.grouped(this.kind, this.areas(tree)), numbers = this.numberOf[this.kind], hues = new Int8Array(this.keysOf[this.kind].length).fill(-1);
    this.nGroups = groups.length;
    groups.slice(0, HUES.length).forEach(([key, , number], k) => {
      this.hues.set(key, k);
      hues[number] = k;
    });
    const table = this.hueTable = new Int8Array(numbers.length);
    for (let fn = 0; fn < table.length; fn++) table[fn] = hues[numbers[fn]];
  }
  // The hue of a function, -1: grey.
  hueOf(fn) { return fn === NONE ? -1 : this.hueTable[fn]; }
  // Fill and text.
  of(box) {
    const {page} = this, theme = page.theme(), matches = page.matches(), {fn} = box;
    if (matches) return page.isMatch(box) ? MATCH[theme] : GREY[theme];
    if (this.kind === "change") return this.changed(page.change(box));
    if (box.sample || box.many) return this.mean(box, theme);
    const hue = this.hueOf(fn);
    return hue < 0 ? GREY[theme] : SHADES[theme][hue][Math.round((STEPS - 1) * Math.min(1, Math.max(0, page.own(box))))].fill;
  }
  // A run has the mean colour of its boxes.
  mean(box, theme) {
    if (box.mean?.theme === theme && box.mean.version === this.version) return box.mean.fill;
    const parts = box.sample || box.many, step = Math.max(1, Math.floor(parts.length / SAMPLES)), fns = box.areFunctions ? null : this.page.functions();
    const shades = MEAN_SHADES[theme], grey = GREY_RGB[theme], {hueTable} = this;
    let n = 0, red = 0, green = 0, blue = 0;
    for (let at = 0; at < parts.length; at += step, n++) {
      const fn = fns ? fns[parts[at]] : parts[at], hue = fn === NONE ? -1 : hueTable[fn], rgb = hue < 0 ? grey : shades[hue];
      red += rgb[0];
      green += rgb[1];
      blue += rgb[2];
    }
    const number = Math.round(red / n) << 16 | Math.round(green / n) << 8 | Math.round(blue / n);
    let fill = this.fills.get(number);
    if (!fill) {
      const rgb = [number >> 16, number >> 8 & 255, number & 255];
      this.fills.set(number, fill = [hexOf(rgb), textOn(rgb)]);
    }
    box.mean = {theme, version: this.version, fill};
    return fill;
  }
  changed(change) {
    const theme = this.page.theme(), strength = Math.min(1, Math.sqrt(Math.abs(change) * 8)), hue = change > 0 ? 4 : 213;
    if (Math.abs(change) < 0.001) return GREY[theme];
    return theme === "dark"
      ? [`hsl(${hue} ${30 + 45 * strength}% ${30 + 12 * strength}%)`, "#ffffff"]
      : [`hsl(${hue} ${40 + 50 * strength}% ${92 - 30 * strength}%)`, "#111111"];
  }
  // What the colours mean: [colour, text] of each.
  legend() {
    const theme = this.page.theme(), found = [];
    if (this.page.matches()) return [[MATCH[theme][0], "matches"], [GREY[theme][0], "others"]];
    if (this.kind === "change")
      return [[this.changed(1)[0], "cost increased"], [this.changed(-1)[0], "cost decreased"], [GREY[theme][0], "unchanged"]];
    const ends = (key, n) => key.split("/").slice(-n).join("/"), keys = [...this.hues.keys()];
    for (const [key, hue] of this.hues) {
      let n = key.endsWith("/") ? 2 : 1;
      while (n < 9 && keys.some(other => other !== key && ends(other, n) === ends(key, n))) n++;
      found.push([SHADES[theme][hue].at(-2).fill[0], ends(key, n) || `no ${this.kind}`]);
    }
    if (this.nGroups > this.hues.size && this.hues.size) found.push([GREY[theme][0], "others"]);
    if (found.length) found.push(["", "stronger: more self cost"]);
    return found;
  }
}
