// Groups of the table's rows, by file, object or package: their self costs, and their inclusive costs from the contexts,
// where a group within itself counts once.
//
// page: {rows: n, first: the number of the first group, beyond all functions, keyOf(kind): of each function, rowFigure(name, k, row), tree(): of contexts, isExact(): whether the contexts
// have exact inclusive costs}
class RowGroups {
  constructor(page) {
    this.page = page;
    this.kind = "";
    this.unfolded = new Set();
  }
  choose(kind) {
    this.kind = kind;
    this.unfolded.clear();
    this.keys = [];
    this.known = new Map();
    this.inclusive = new Map();
    const keys = kind ? this.page.keyOf(kind) : [];
    this.groupOf = Uint32Array.from(keys, key => {
      if (!this.known.has(key)) this.known.set(key, this.keys.push(key) - 1);
      return this.known.get(key);
    });
    this.members = this.keys.map(() => []);
    for (let i = 0; i < Math.min(this.page.rows(), keys.length); i++) this.members[this.groupOf[i]].push(i);
  }
  // The figures change with value, thread and label.
  forget() { this.inclusive?.clear(); }
  of(i) { return this.page.first + this.groupOf[i]; }
  title(row) { return this.keys[row - this.page.first] || "(none)"; }
  count(row) { return this.members[row - this.page.first].length; }
  figure(name, k, row) {
    const group = row - this.page.first;
    if (name !== "row inclusive") return this.members[group].reduce((sum, i) => sum + this.page.rowFigure(name, k, i), 0);
    if (!this.page.isExact()) return 0;
    if (!this.inclusive.has(k)) this.inclusive.set(k, this.page.tree().figures(k, this.keys.length, fn => fn === NONE ? NONE : this.groupOf[fn])["row inclusive"]);
    return this.inclusive.get(k)[group];
  }
}
