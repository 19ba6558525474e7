// Transforms of the contexts, in the order in which they were chosen; docs/filters.md has the rule that they share with the
// options of the same names.
//
//     hide RE, hide-object RE        functions disappear, their cost is their caller's; without a caller it is that of [hidden]
//     collapse-object RE             adjacent frames of an object become one
//     collapse-recursion             adjacent frames of a function become one
//     merge-lines                    functions that differ in their first line only become one
//     focus RE                       contexts of matching functions, which become roots; the others are left out (--root-at)
//     subtree main;f;g               the context main > f > g, by its names, which becomes the root
//
// A step is [kind, what].
const HIDDEN = "[hidden]";
const STEPS_OF_FUNCTION = ["hide", "focus"], STEPS_OF_OBJECT = ["hide-object", "collapse-object"], STEPS_ALONE = ["collapse-recursion", "merge-lines"];
const literal = text => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
// What a pattern matches if it is made of one name: ^name$; else null.
const nameOfPattern = text => {
  const name = /^\^(.*)\$$/s.exec(text)?.[1].replace(/\\([.*+?^${}()|[\]\\])/g, "$1");
  return name !== undefined && `^${literal(name)}$` === text ? name : null;
};
// The names of a path, and back: main;a\;b has main and a;b.
const pathOf = names => names.map(name => name.replace(/[\\;]/g, "\\$&")).join(";");
const namesOfPath = text => [...text.matchAll(/(?:[^\\;]|\\.)+/gs)].map(([name]) => name.replace(/\\(.)/gs, "$1"));
const MOST_TREES = 5;
const baseName = path => /[^/\\]+$/.exec(path)?.[0] ?? path;

// Adds functions that stand for objects, and [hidden], after those of the profile.  data.functions: the number of the latter.
const addFunctions = data => {
  const {head, column, replace} = data, {texts} = head;
  const columns = ["name", "file", "object", "line"].map(name => column(`function ${name}`)), added = columns.map(() => []);
  const [names, files, objects, lines] = columns;
  data.functions = names.length;
  data.ofObject = new Map();  // by object, a number of a text: the function that stands for it
  const wanted = new Map([...new Set(objects)].filter(object => texts[object]).map(object => [object, baseName(texts[object])]));
  const places = new Map([HIDDEN, "", ...wanted.values()].map(text => [text, -1]));  // of texts
  for (let at = texts.length - 1; at >= 0; at--) if (places.has(texts[at])) places.set(texts[at], at);
  const place = text => {
    if (places.get(text) < 0) places.set(text, texts.push(text) - 1);
    return places.get(text);
  };
  const empty = place(""), isName = new Uint8Array(texts.length), known = new Map();  // functions without file and line
  const key = (name, object) => `${name} ${object}`;
  for (const at of places.values()) if (at >= 0) isName[at] = 1;
  for (let fn = 0; fn < names.length; fn++) if (isName[names[fn]] && files[fn] === empty && !lines[fn]) known.set(key(names[fn], objects[fn]), fn);
  const add = (name, object) => {
    const found = known.get(key(place(name), object));
    if (found !== undefined) return found;
    [place(name), empty, object, 0].forEach((item, i) => added[i].push(item));
    return data.functions + added[0].length - 1;
  };
  for (const [object, name] of wanted) data.ofObject.set(object, add(name, object));
  data.hidden = add(HIDDEN, empty);
  ["name", "file", "object", "line"].forEach((name, i) => {
    const all = new Uint32Array(data.functions + added[i].length);
    all.set(columns[i]);
    all.set(added[i], data.functions);
    replace(`function ${name}`, all);
  });
};

class Transforms {
  constructor(data) {
    this.data = data;
    this.steps = [];
    this.trees = new Map();
    this.isMatch = new Map();  // by pattern: of each text 1 or 2, 0: not known
  }
  // Whether functions differ in their first line only.
  get hasLines() {
    this.withoutLines ??= this.linesMerged();
    return this.withoutLines.some((to, fn) => to !== fn);
  }
  linesMerged() {
    const {column} = this.data, columns = ["name", "file", "object"].map(name => column(`function ${name}`)), known = new Map();
    return Uint32Array.from(columns[0], (_, fn) => {
      const key = columns.map(items => items[fn]).join();
      if (!known.has(key)) known.set(key, fn);
      return known.get(key);
    });
  }
  get id() { return JSON.stringify(this.steps); }
  // Those that leave contexts out.
  roots() { return JSON.stringify(this.steps.filter(([kind]) => kind === "focus" || kind === "subtree")); }
  get isActive() { return this.steps.length > 0; }
  // For the address, and back.
  address() { return this.steps.map(([kind, what]) => what ? `${kind}:${what}` : kind); }
  restore(texts) {
    const {head: {texts: all}, column} = this.data, names = column("function name");
    this.steps = texts.map(text => [text.split(":", 1)[0], text.includes(":") ? text.slice(text.indexOf(":") + 1) : ""])
      .map(([kind, what]) => [kind, kind === "subtree" && /^\d+(\.\d+)*$/.test(what) && !all.includes(what)  // of earlier pages
        ? pathOf(what.split(".").map(fn => all[names[fn]] || "???")) : what])
      .filter(([kind, what]) => what ? [...STEPS_OF_FUNCTION, ...STEPS_OF_OBJECT, "subtree"].includes(kind) : STEPS_ALONE.includes(kind));
  }
  // The functions that match, as (function => truth).
  matching(what, of) {
    const {texts} = this.data.head, items = this.data.column(`function ${of}`), name = nameOfPattern(what);
    if (!this.isMatch.has(what)) {
      const known = new Uint8Array(texts.length).fill(name === null ? 0 : 2), at = name === null ? -1 : texts.indexOf(name);
      if (at >= 0) known[at] = 1;
      this.isMatch.set(what, known);
    }
    const known = this.isMatch.get(what);
    let wanted = null;
    if (name === null)
      try {
        wanted = new RegExp(what);
      } catch {
        wanted = new RegExp(literal(what));
      }
    return fn => {
      const text = items[fn];
      return (known[text] ||= wanted.test(texts[text]) ? 1 : 2) === 1;
    };
  }
  // These functions.
  listed(what, of) {
    const {head: {texts}, column} = this.data, items = column(`function ${of}`), name = nameOfPattern(what), found = [];
    if (name !== null) return allOf(items, texts.indexOf(name), 0);
    const isMatch = this.matching(what, of);
    for (let f = 0; f < items.length; f++) if (isMatch(f)) found.push(f);
    return found;
  }
  // The tree of a thread, -1: of all, after the steps.  Those after fewer steps are kept.
  tree(thread) {
    let key = `${thread}`;
    const kept = new Map(), of = make => {
      kept.set(key, this.trees.get(key) || make());
      return kept.get(key);
    };
    let tree = of(() => new Tree(this.data, thread));
    for (const [kind, what] of this.steps) {
      const before = tree;
      key += `\n${kind} ${what}`;
      tree = of(() => this[STEP_METHODS[kind]](what, before));
    }
    for (const [id, other] of [...this.trees].reverse()) if (kept.size < MOST_TREES && !kept.has(id)) kept.set(id, other);
    this.trees = new Map([...kept].reverse());  // the last ones used are the last ones here
    return tree;
  }
  get limit() { return this.data.column("function name").length; }
  hidden(wanted, tree) {
    const {limit, data: {hidden, head: {texts}, column}} = this, names = column("function name"), {fn, n} = tree;
    const noStack = texts.indexOf("[no stack]");  // no function, so it is not hidden
    const functions = wanted.filter(f => f !== hidden && names[f] !== noStack), hides = new Uint8Array(limit), changes = new Uint8Array(n);
    let gone = [];
    for (const f of functions) hides[f] = 1;
    if (functions.length === 1) gone = allOf(fn, functions[0]);
    else if (functions.length) for (let i = 1; i < n; i++) if (fn[i] !== NONE && hides[fn[i]]) gone.push(i);
    for (const i of gone) changes[i] = GONE;
    return gone.length ? tree.changed({changes, changed: gone, limit, lost: hidden}, {functions}) : tree;
  }
  hide(what, tree) { return this.hidden(this.listed(what, "name"), tree); }
  hideObject(what, tree) {
    const {head: {texts}, column} = this.data, objects = column("function object");
    return this.hidden(this.listed(what, "object").filter(f => texts[objects[f]] !== ""), tree);
  }
  // Nodes get other functions; those whose function is that of their caller become one with it, if it merges.
  // functions: by function, what it becomes; merges: by function, whether it does, null: all do
  renamed(functions, merges, tree) {
    const {limit} = this, {n, fn, up} = tree, changes = new Uint8Array(n), changed = [];
    let areSame = true;
    for (let i = 1; i < n; i++) {
      if (fn[i] === NONE) continue;
      const f = functions[fn[i]], above = fn[i - up[i]];
      if (above !== NONE && functions[above] === f && (!merges || merges[f])) changes[i] = GONE;
      else if (f !== fn[i]) changes[i] = RENAMED;
      else continue;
      changed.push(i);
      areSame &&= f === fn[i];
    }
    return changed.length ? tree.changed({changes, changed, functions, limit}, areSame ? {functions: []} : null) : tree;
  }
  collapseObject(what, tree) {
    const {limit, data: {head: {texts}, column, ofObject}} = this, objects = column("function object"), wanted = this.listed(what, "object").filter(f => texts[objects[f]] !== "");
    const functions = this.themselves(), ones = new Uint8Array(limit);
    for (const f of wanted) ones[functions[f] = ofObject.get(objects[f])] = 1;
    return wanted.length ? this.renamed(functions, ones, tree) : tree;
  }
  themselves() {
    const found = new Uint32Array(this.limit);
    for (let f = 0; f < found.length; f++) found[f] = f;
    return found;
  }
  collapseRecursion(what, tree) { return this.renamed(this.themselves(), null, tree); }
  mergeLines(what, tree) {
    this.withoutLines ??= this.linesMerged();
    return this.renamed(this.withoutLines, new Uint8Array(this.limit), tree);
  }
  // Nodes from which one begins are roots; those outside are left out.
  rooted(isBegin, tree) {
    const {n, span} = tree, begins = [];
    for (let i = 1; i < n;)
      if (isBegin(i)) {
        begins.push(i);
        i += span[i];
      } else i++;
    return tree.changed({begins, limit: this.limit});
  }
  focus(what, tree) {
    const {fn} = tree, matches = new Uint8Array(this.limit);
    for (const f of this.listed(what, "name")) matches[f] = 1;
    return this.rooted(i => fn[i] !== NONE && matches[fn[i]] > 0, tree);
  }
  subtree(what, tree) {
    const {head: {texts}, column} = this.data, names = column("function name"), path = namesOfPath(what), {fn, up} = tree;
    const found = new Int32Array(tree.n);  // by node: how much of the path leads to it
    return this.rooted(i => {
      const caller = i - up[i], above = caller ? found[caller] : 1;
      if (above && fn[i] !== NONE && (texts[names[fn[i]]] || "???") === path[above - 1]) found[i] = above + 1;
      return found[i] === path.length + 1;
    }, tree);
  }
  // The text of a step.
  text([kind, what]) {
    const name = nameOfPattern(what) ?? `/${what}/`, short = text => middleOf(shortName(text), 40);
    if (kind === "subtree") return `focus on the subtree of ${short(namesOfPath(what).at(-1))}`;
    const words = {hide: "hide", "hide-object": "hide", "collapse-object": "collapse", focus: "focus on", "collapse-recursion": "collapse recursion", "merge-lines": "merge lines"}[kind];
    return what ? `${words} ${short(STEPS_OF_OBJECT.includes(kind) && nameOfPattern(what) ? baseName(name) : name)}` : words;
  }
}
const STEP_METHODS = {
  hide: "hide", "hide-object": "hideObject", "collapse-object": "collapseObject", "collapse-recursion": "collapseRecursion", "merge-lines": "mergeLines",
  focus: "focus", subtree: "subtree",
};
