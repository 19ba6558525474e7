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
// The nodes below which nodes may become one: below the caller of one that changes.  changes: 1 by node
const mixedBelow = (parent, changes) => {
  const found = changes.slice(), n = changes.length;
  for (let i = 1; i < n; i++) if (changes[i]) found[parent[i]] = 1;
  for (let i = 1; i < n; i++) found[i] |= found[parent[i]];
  return found;
};
const MOST_TREES = 5;
const baseName = path => /[^/\\]+$/.exec(path)?.[0] ?? path;

// Adds functions that stand for objects, and [hidden], after those of the profile.  data.functions: the number of the latter.
const addFunctions = data => {
  const {head, column, replace} = data, {texts} = head;
  const columns = ["name", "file", "object", "line"].map(name => Array.from(column(`function ${name}`)));
  const [names, files, objects, lines] = columns;
  data.functions = names.length;
  data.ofObject = new Map();  // by object, a number of a text: the function that stands for it
  const known = new Map();  // functions without file and line
  const key = (name, object) => `${name}\n${object}`;
  names.forEach((name, fn) => { if (!texts[files[fn]] && !lines[fn]) known.set(key(texts[name], texts[objects[fn]]), fn); });
  let empty = texts.indexOf("");
  if (empty < 0) empty = texts.push("") - 1;
  const add = (name, object) => {
    const found = known.get(key(name, texts[object]));
    if (found !== undefined) return found;
    let at = texts.indexOf(name);
    if (at < 0) at = texts.push(name) - 1;
    [at, empty, object, 0].forEach((item, i) => columns[i].push(item));
    return names.length - 1;
  };
  for (const object of new Set(objects)) if (texts[object]) data.ofObject.set(object, add(baseName(texts[object]), object));
  data.hidden = add(HIDDEN, empty);
  ["name", "file", "object", "line"].forEach((name, i) => replace(`function ${name}`, Uint32Array.from(columns[i])));
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
    if (!this.isMatch.has(what)) this.isMatch.set(what, new Uint8Array(this.data.head.texts.length));
    const known = this.isMatch.get(what), {texts} = this.data.head, items = this.data.column(`function ${of}`);
    const name = nameOfPattern(what);
    let wanted = {test: text => text === name};
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
      tree = of(() => before.changed((to, own) => this[STEP_METHODS[kind]](what, own, before.fn, before.parent, before.n, to)));
    }
    for (const [id, other] of [...this.trees].reverse()) if (kept.size < MOST_TREES && !kept.has(id)) kept.set(id, other);
    this.trees = new Map([...kept].reverse());  // the last ones used are the last ones here
    return tree;
  }
  hidden(isHidden, own, fn, parent, n, to) {
    const {data: {hidden, head: {texts}, column}} = this, names = column("function name");
    const noStack = texts.indexOf("[no stack]");  // no function, so it is not hidden
    const hides = new Uint8Array(names.length), changes = new Uint8Array(n), gone = [];
    for (let f = 0; f < names.length; f++) hides[f] = f !== hidden && names[f] !== noStack && isHidden(f);
    for (let i = 1; i < n; i++) if (hides[fn[i]]) changes[i] = gone.push(i) > 0;  // not of NONE
    if (!gone.length) return false;
    const mixed = mixedBelow(parent, changes);
    for (let i = 1; i < n; i++) own[i] = changes[i] ? own[parent[i]] : to.enter(own[parent[i]], fn[i], !mixed[parent[i]]);
    let node = -1;  // what hidden nodes without a caller cost
    for (const i of gone) own[i] ||= node < 0 ? node = to.enter(0, hidden, false) : node;
    return {hidden: gone, functions: hides, node};
  }
  hide(what, ...tree) { return this.hidden(this.matching(what, "name"), ...tree); }
  hideObject(what, ...tree) {
    const isMatch = this.matching(what, "object"), {head: {texts}, column} = this.data, objects = column("function object");
    return this.hidden(f => texts[objects[f]] !== "" && isMatch(f), ...tree);
  }
  // Nodes get other functions; those whose function is that of their caller become one with it, if it merges.
  renamed(becomes, merges, own, fn, parent, n, to) {
    const last = new Uint32Array(n).fill(NONE);
    const functions = Uint32Array.from(this.data.column("function name"), (_, f) => becomes(f)), isOne = Uint8Array.from(functions, f => merges(f));
    for (let i = 1; i < n; i++) if (fn[i] !== NONE) last[i] = functions[fn[i]];
    const joins = new Uint8Array(n), changes = new Uint8Array(n);
    for (let i = 1; i < n; i++) {
      joins[i] = last[parent[i]] === last[i] ? isOne[last[i]] : 0;  // 0 for NONE
      changes[i] = joins[i] || last[i] !== fn[i] ? 1 : 0;
    }
    if (!changes.includes(1)) return false;
    const mixed = mixedBelow(parent, changes);
    for (let i = 1; i < n; i++) own[i] = joins[i] ? own[parent[i]] : to.enter(own[parent[i]], last[i], !mixed[parent[i]]);
    return functions.some((f, at) => f !== at) ? undefined : {hidden: null};
  }
  collapseObject(what, ...tree) {
    const isMatch = this.matching(what, "object"), {head: {texts}, column, ofObject} = this.data, objects = column("function object");
    const ones = new Set();
    return this.renamed(f => {
      if (texts[objects[f]] === "" || !isMatch(f)) return f;
      const one = ofObject.get(objects[f]);
      ones.add(one);
      return one;
    }, f => ones.has(f), ...tree);
  }
  collapseRecursion(what, ...tree) { return this.renamed(f => f, () => true, ...tree); }
  mergeLines(what, ...tree) {
    this.withoutLines ??= this.linesMerged();
    return this.renamed(f => this.withoutLines[f], () => false, ...tree);
  }
  // Nodes from which one begins are roots; those outside are left out.
  rooted(begins, own, fn, parent, n, to) {
    own.fill(-1);
    for (let i = 1; i < n; i++)
      if (own[parent[i]] > 0) own[i] = to.enter(own[parent[i]], fn[i], false);
      else if (begins(i)) own[i] = to.enter(0, fn[i], false);
  }
  focus(what, own, fn, ...tree) {
    const isMatch = this.matching(what, "name");
    this.rooted(i => fn[i] !== NONE && isMatch(fn[i]), own, fn, ...tree);
  }
  subtree(what, own, fn, parent, ...tree) {
    const {head: {texts}, column} = this.data, names = column("function name"), path = namesOfPath(what);
    const found = new Int32Array(fn.length);  // by node: how much of the path leads to it
    this.rooted(i => {
      const above = parent[i] ? found[parent[i]] : 1;
      if (above && fn[i] !== NONE && (texts[names[fn[i]]] || "???") === path[above - 1]) found[i] = above + 1;
      return found[i] === path.length + 1;
    }, own, fn, parent, ...tree);
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
