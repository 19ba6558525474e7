// The colours of boxes in each colour mode, and the legend of the modes that need one.
const HUES = [212, 28, 140, 282, 340, 62, 178, 0];  // of the most expensive groups
const GREY = {light: ["#dfe2e7", "#4a505c"], dark: ["#3a3f49", "#c8cdd6"]};
const MANY = {light: ["#cdbfa9", "#2f281d"], dark: ["#574c3d", "#efe6d8"]};
const MATCH = {light: ["#c95fdc", "#1a001f"], dark: ["#a545b8", "#ffffff"]};
const GROUP = {
  light: hue => [`hsl(${hue} 72% 76%)`, "#111111"],
  dark: hue => [`hsl(${hue} 42% 33%)`, "#ffffff"],
};

// page: {data, nameOf(fn), theme(): "light" or "dark", matches(): by function or null, isMatch(box), change(box): share}
class Colours {
  constructor(page) {
    this.page = page;
    const {head, column} = page.data, {texts} = head;
    const files = column("function file"), objects = column("function object");
    const keys = {
      package: fn => packageOf(page.nameOf(fn)),
      object: fn => texts[objects[fn]],
      file: fn => texts[files[fn]],
    };
    const n = files.length;
    this.kinds = head.compared ? ["change", "name"] : ["name"];
    this.keyOf = {};  // by kind: of each function
    for (const [kind, key] of Object.entries(keys)) {
      const of = this.keyOf[kind] = Array.from({length: n}, (_, fn) => key(fn));
      if (new Set(of).size > 1) this.kinds.push(kind);
    }
    this.hashes = Uint32Array.from({length: n}, (_, fn) => {
      let hash = 7;
      for (const c of page.nameOf(fn).slice(0, 200)) hash = (hash * 31 + c.codePointAt(0)) >>> 0;
      return hash;
    });
    this.kind = this.kinds[0];
    this.hues = new Map();
  }
  // The most expensive groups of a tree get distinct hues, the others grey.
  arrange(tree) {
    this.hues = new Map();
    const of = this.keyOf[this.kind];
    if (!of) return;
    const costs = new Map();
    for (let i = 1; i < tree.n; i++) {
      const fn = tree.fn[i];
      if (fn !== NONE) costs.set(of[fn], (costs.get(of[fn]) || 0) + tree.own[i]);
    }
    costs.delete("");
    const largest = [...costs].sort((a, b) => b[1] - a[1]).slice(0, HUES.length);
    largest.forEach(([key], k) => this.hues.set(key, HUES[k]));
  }
  // Fill and text.
  of(box) {
    const {page} = this, theme = page.theme(), matches = page.matches(), {fn, many} = box;
    if (matches) return page.isMatch(box) ? MATCH[theme] : GREY[theme];
    if (this.kind === "change") return this.changed(page.change(box));
    if (fn === NONE && !many) return GREY[theme];
    if (many) return MANY[theme];
    const group = this.keyOf[this.kind];
    if (group) return this.hues.has(group[fn]) ? GROUP[theme](this.hues.get(group[fn])) : GREY[theme];
    const hash = this.hashes[fn], hue = 8 + hash % 44, light = (hash >>> 8) % 12;
    return theme === "dark" ? [`hsl(${hue} 52% ${23 + light * 0.7}%)`, "#ffffff"] : [`hsl(${hue} 88% ${66 + light}%)`, "#1a1206"];
  }
  changed(change) {
    const theme = this.page.theme(), strength = Math.min(1, Math.sqrt(Math.abs(change) * 8)), hue = change > 0 ? 4 : 213;
    if (Math.abs(change) < 0.001) return GREY[theme];
    return theme === "dark"
      ? [`hsl(${hue} ${30 + 45 * strength}% ${30 + 12 * strength}%)`, "#ffffff"]
      : [`hsl(${hue} ${40 + 50 * strength}% ${92 - 30 * strength}%)`, "#111111"];
  }
  // What the colours mean: [colour, text] of each.
  legend(drawn) {
    const theme = this.page.theme(), isThere = test => drawn.some(test);
    const found = [];
    if (this.page.matches()) found.push([MATCH[theme][0], "matches"]);
    else if (this.kind === "change")
      found.push([this.changed(1)[0], "cost increased"], [this.changed(-1)[0], "cost decreased"], [GREY[theme][0], "unchanged"]);
    else {
      for (const [key, hue] of this.hues) found.push([GROUP[theme](hue)[0], key.slice(key.lastIndexOf("/", key.length - 2) + 1)]);
      if (this.hues.size) found.push([GREY[theme][0], "others"]);
      if (isThere(box => box.many)) found.push([MANY[theme][0], "several small boxes"]);
    }
    if (this.kind === "name" && isThere(box => box.fn === NONE && !box.many && box.id)) found.push([GREY[theme][0], "[pruned]"]);
    return found;
  }
}
