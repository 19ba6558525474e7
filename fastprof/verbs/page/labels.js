// Labels of samples: their keys and values, and what contexts cost in samples that have the chosen ones.  Threads,
// processes and objects (of traces: categories) of functions are keys, too, of which a context has one value.
//
//   keys      [{name, values: [{text, title, key}], merged}]; a value's text is null if it stands for several
//   chosen    by key: its value; NO_VALUE: samples without the key
const NO_VALUE = {text: undefined, title: "(none)"};

class Labels {
  constructor(data) {
    const {head, column} = data, {texts} = head;
    this.data = data;
    this.chosen = new Map();
    this.rests = new Map();  // by value column: of each context the cost that its entries leave
    this.figures = new Map();
    this.keys = (head.labels?.keys || []).map(({name, merged}) => ({name, merged, values: [], ofSets: true}));
    const keyOf = column("value key"), textOf = column("value text");
    const values = Array.from(keyOf, (key, v) => {
      const text = textOf[v] === NONE ? null : texts[textOf[v]], of = this.keys[key];
      const value = {text, key: of, title: text === null ? `[${exact(of.merged)} other values]` : valueTitle(of.name, text)};
      of.values.push(value);
      return value;
    });
    let at = 0;
    const flat = column("set value");
    this.sets = Array.from(column("set size"), size => Array.from(flat.subarray(at, at += size), v => values[v]));
    if (!this.sets.length) this.sets = [[]];
    this.addThreads(head.threads);
    if (!head.estimated) this.addObjects(objectTitle(data));
    for (const key of this.keys) key.values.sort(byText);
  }
  // The process of each thread is in its name: "process 7, thread 8".
  addThreads(threads) {
    if (threads.length < 2) return;
    const {column} = this.data, up = column("context up"), roots = column("context thread");
    const threadOf = this.threadOf = new Uint32Array(up.length);
    for (let i = 0; i < up.length; i++) threadOf[i] = up[i] ? threadOf[i - up[i]] : roots[i];
    const processes = threads.map(name => /^process \d+(?=,|$)/.exec(name)?.[0] || name);
    const add = (name, texts, isOne) => {  // isOne: equal texts are one value
      const known = new Map(), key = {name, merged: 0, ofSets: false, isThread: !isOne};
      key.ofThread = texts.map((text, t) => {
        const id = isOne ? text : t;
        if (!known.has(id)) known.set(id, {text, key, title: text.replace(/^process (?=\d+$)/, "")});
        return known.get(id);
      });
      key.values = [...known.values()];
      key.valueOf = i => key.ofThread[this.threadOf[i]];
      this.addKey(key, known.size);
    };
    add("process", processes, true);
    add("thread", threads, false);
  }
  addObjects(name) {
    const {head: {texts}, column} = this.data, functions = column("context function"), objects = column("function object");
    const known = new Map(), key = {name, merged: 0, ofSets: false}, isThere = new Uint8Array(this.data.functions);
    for (let i = 0; i < functions.length; i++) if (functions[i] !== NONE) isThere[functions[i]] = 1;
    let nNone = 0;
    for (let fn = 0; fn < isThere.length; fn++) {
      const text = isThere[fn] && texts[objects[fn]];
      if (!text) nNone = 1;
      else if (!known.has(objects[fn])) known.set(objects[fn], {text, key, title: text});
    }
    key.values = [...known.values()];
    key.ofFunction = fn => isThere[fn] && known.get(objects[fn]) || NO_VALUE;  // roots and [pruned] have no function
    key.valueOf = i => key.ofFunction(functions[i]);
    this.addKey(key, known.size + nNone);
  }
  addKey(key, nValues) {
    if (nValues > 1 && !this.keys.some(other => other.name === key.name)) this.keys.push(key);
  }
  get id() { return [...this.chosen].map(([key, value]) => `${key.name}=${value.title}`).join("\n"); }
  get isChosen() { return this.chosen.size > 0; }
  title() { return [...this.chosen].map(([key, value]) => `${key.name} ${value.title}`).join(", "); }
  choose(key, value) {
    if (value) this.chosen.set(key, value);
    else this.chosen.delete(key);
  }
  has(values, key, value) {
    return value === NO_VALUE ? !values.some(one => one.key === key) : values.includes(value);
  }
  // Which label sets, threads and contexts have what is chosen, not counting `except`.
  kept(except) {
    const chosen = [...this.chosen].filter(([key]) => key !== except);
    const ofSets = chosen.filter(([key]) => key.ofSets), ofContexts = chosen.filter(([key]) => !key.ofSets);
    const sets = this.sets.map(values => ofSets.every(([key, value]) => this.has(values, key, value)));
    const threads = this.data.head.threads.map((_, t) => ofContexts.every(([key, value]) => !key.ofThread || key.ofThread[t] === value));
    return {sets, threads, isKept: i => ofContexts.every(([key, value]) => key.valueOf(i) === value)};
  }
  // Whether a function has the chosen object.
  isFunctionKept(fn) {
    for (const [key, value] of this.chosen) if (key.ofFunction && key.ofFunction(fn) !== value) return false;
    return true;
  }
  // Calls take(context, set, cost) for all of the cost in value column k.
  each(k, take) {
    const {column} = this.data, steps = column("label context"), sets = column("label set"), costs = column(`label self ${k}`);
    if (!this.rests.has(k)) {
      const rest = Float64Array.from(column(`context self ${k}`));
      for (let e = 0, i = 0; e < steps.length; e++) rest[i += steps[e]] -= costs[e];
      this.rests.set(k, rest);
    }
    const rest = this.rests.get(k), own = column("context set");
    for (let i = 0; i < rest.length; i++) if (rest[i]) take(i, own.length ? own[i] : 0, rest[i]);
    for (let e = 0, i = 0; e < steps.length; e++) {
      i += steps[e];
      if (costs[e]) take(i, sets[e], costs[e]);
    }
  }
  // The self costs of contexts in value column k, of samples that have what is chosen.
  self(k) {
    const all = this.data.column(`context self ${k}`);
    if (!this.isChosen) return all;
    const {sets, isKept} = this.kept(), found = new Float64Array(all.length);
    this.each(k, (i, set, cost) => { if (sets[set] && isKept(i)) found[i] += cost; });
    return found;
  }
  // The costs of each value of a key in value column k, of samples that have what is chosen of other keys, and of
  // those without the key; and the sum: a sample may have several values of a key.
  split(key, k, thread) {
    const {sets, isKept} = this.kept(key), {threadOf} = this, costs = new Map();
    const ofSet = this.sets.map(values => values.filter(value => value.key === key));
    let sum = 0;
    this.each(k, (i, set, cost) => {
      if (!sets[set] || !isKept(i) || (thread >= 0 && threadOf[i] !== thread)) return;
      const mine = key.ofSets ? ofSet[set] : [key.valueOf(i)];
      for (const value of mine.length ? mine : [NO_VALUE]) costs.set(value, (costs.get(value) || 0) + cost);
      sum += cost;
    });
    return {costs, sum};
  }
  // What the page lacks.
  facts() {
    const found = this.keys.filter(key => key.merged).map(({name, merged}) => `${exact(merged)} values of label ${name} merged into [${exact(merged)} other values]: too small for this page`);
    const {left_out: left = [], n_left_out: n} = this.data.head.labels || {};
    if (left.length) found.push(`${plural(n, "label")} left out: ${left.slice(0, 5).map(({name, values}) => `${name.slice(0, 80)} (${plural(values, "value")})`).join(", ")}${n > 5 ? " …" : ""}`);
    return found;
  }
  // For the address: KEY=VALUE, KEY alone for samples without it.
  address() { return [...this.chosen].map(([key, {text}]) => text === undefined ? key.name : `${key.name}=${text ?? "[others]"}`); }
  restore(texts) {
    this.chosen.clear();
    for (const text of texts)
      for (const key of this.keys) {
        const value = text === key.name ? NO_VALUE : text.startsWith(`${key.name}=`) &&
          (key.values.find(value => value.text === text.slice(key.name.length + 1)) ||
          (text.endsWith("=[others]") && key.values.find(value => value.text === null)));
        if (value) this.choose(key, value);
      }
  }
}

// A number may have a unit; Go's runtime names the key after it.
const valueTitle = (key, text) => {
  const [, number, unit] = /^(-?\d+)(?: (\S+))?$/.exec(text) || [];
  const known = number && UNITS.has((unit || key).toLowerCase());
  return known ? `${text} (${figure(Number(number), unit || key)})` : text;
};
let collator = null;  // made when it is needed, which takes 10 ms
const byText = (a, b) => (a.text === null) - (b.text === null) || (collator ??= new Intl.Collator("en", {numeric: true})).compare(a.text ?? "", b.text ?? "");

// The chooser: a key, its value, and below the flame graph a table of the values with their costs.
class LabelChooser {
  // page: {labels, columns(): value columns shown, thread(), threadName(), unit(), setThread(t), changed()}
  constructor(page) {
    const {labels} = this.page = page;
    this.key = null;  // whose values the table has
    this.rows = [];
    this.keys = byId("key");
    this.values = byId("label");
    byId("labels").hidden = !labels.keys.length;
    this.keys.replaceChildren(element("option", {value: ""}, "none"), ...labels.keys.map(({name}, at) => element("option", {value: at}, name)));
    this.keys.addEventListener("change", () => {
      this.key = labels.keys[this.keys.value] || null;
      this.page.changed();
    });
    this.values.addEventListener("change", () => this.choose(this.key, this.options[this.values.value]));
    this.table = new Table(byId("values"), {title: "Values of the label", choose: i => {
      const {value} = this.rows[i];
      this.choose(this.key, this.chosenOf(this.key) === value ? null : value);
    }});
  }
  chosenOf(key) {
    if (key.isThread) return key.ofThread[this.page.thread()] || null;
    return this.page.labels.chosen.get(key) || null;
  }
  choose(key, value) {
    if (key.isThread) this.page.setThread(key.ofThread.indexOf(value));
    else this.page.labels.choose(key, value);
    this.page.changed();
  }
  restore(name, texts) {
    const {labels} = this.page;
    labels.restore(texts);
    this.key = labels.keys.find(key => key.name === name) || [...labels.chosen.keys()][0] || null;
  }
  draw() {
    const {labels} = this.page, {key} = this;
    this.keys.value = key ? labels.keys.indexOf(key) : "";
    this.values.hidden = byId("split").hidden = !key;
    const chip = (text, clear) => element("button", {type: "button", title: "Show all", onclick: clear}, `${text} ✕`);
    const {thread, threadName, setThread, changed} = this.page;
    byId("chips").replaceChildren(...thread() < 0 ? [] : [chip(`thread: ${threadName()}`, () => {
      setThread(-1);
      changed();
    })], ...[...labels.chosen].map(([other, value]) => chip(`${other.name}: ${value.title}`, () => this.choose(other, null))));
    if (!key) return;
    this.drawTable();
    this.options = [null, ...key.values, ...this.rows.some(row => row.value === NO_VALUE) ? [NO_VALUE] : []];
    this.values.replaceChildren(...this.options.map((value, at) => element("option", {value: at}, value ? value.title : `all ${exact(key.values.length)}`)));
    this.values.value = Math.max(0, this.options.indexOf(this.chosenOf(key)));
  }
  drawTable() {
    const {page: {labels, columns, thread, unit}, key} = this;
    const found = columns().map(k => labels.split(key, k, key.isThread ? -1 : thread()));
    this.rows = [...new Set(found.flatMap(({costs}) => [...costs.keys()]))]
      .map(value => ({value, costs: found.map(({costs}) => costs.get(value) || 0)}));
    const largest = Math.max(0, ...this.rows.flatMap(row => row.costs.map(Math.abs)));
    const scale = scaleOf(largest, unit(), this.rows.flatMap(row => row.costs));
    const cost = at => i => this.rows[i].costs[at];
    const number = (title, value) => ({title: `${title} ${scale.unit}`.trim(), width: 104, value, key: i => Math.abs(value(i)), write: i => scale.write(value(i))});
    const order = this.rows.map((row, i) => i).sort((a, b) => byText(this.rows[a].value, this.rows[b].value));
    const places = new Map(order.map((i, at) => [i, at]));
    const name = {title: key.name, width: 0, value: i => places.get(i), fill: (cell, i) => this.fill(cell, i, largest)};
    const delta = i => cost(1)(i) - cost(0)(i);
    this.table.show([...found.length > 1
      ? [{...number("Δ", delta), write: i => signed(delta(i), scale.write(delta(i))), kind: i => delta(i) > 0 ? "more" : delta(i) < 0 ? "less" : ""},
        number("old", cost(0)), number("new", cost(1))]
      : [number("self", cost(0)), {title: "%", width: 70, value: cost(0), write: i => percent(cost(0)(i), found[0].sum).replace(" %", "")}],
    name], found.length ? this.rows.length : 0);
    this.table.mark(this.rows.findIndex(row => row.value === this.chosenOf(key)));
    byId("split-title").textContent = `Values of ${key.name}`;
    byId("values").style.maxHeight = `${Math.min(9, this.rows.length + 1) * HEIGHT + 4}px`;
  }
  fill(cell, i, largest) {
    const {value, costs} = this.rows[i], bar = element("i", {});
    bar.style.width = `${100 * Math.abs(costs.at(-1)) / (largest || 1)}%`;
    cell.append(element("span", {class: "track"}, bar), value.title);
    cell.title = value.title;
  }
}
