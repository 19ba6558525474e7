// The table of functions.  Only visible rows are elements, so its length does not matter.
const HEIGHT = 24;  // of a row, see page.css
const PRINTED = 200;  // rows

// Rows by their values, in place of comparisons in JavaScript.  Those of equal values keep their order; those of 0 are not sorted.
const ranked = (rows, value, isDown) => {
  const all = rows.length, keys = new Float64Array(all), places = new Uint32Array(all), zeros = new Uint32Array(all), found = new Uint32Array(all);
  let n = 0, nZeros = 0, isWhole = true;  // value and position fit one number
  for (let at = 0; at < all; at++) {
    const key = value(rows[at]);
    if (!key) {
      zeros[nZeros++] = rows[at];
      continue;
    }
    keys[n] = isDown ? -key : key;
    places[n++] = rows[at];
    isWhole &&= Number.isInteger(key) && Math.abs(key) < 2 ** 52 / all;
  }
  const mine = keys.subarray(0, n), sorted = isWhole ? mine : mine.slice(), taken = new Uint32Array(isWhole ? 0 : n);
  if (isWhole) for (let at = 0; at < n; at++) mine[at] = mine[at] * n + at;
  sorted.sort();
  const nNegative = firstOf(sorted, key => key > 0);
  found.set(zeros.subarray(0, nZeros), nNegative);
  for (let at = 0; at < n; at++) {
    const key = mine[at], to = isWhole ? at : firstOf(sorted, other => other >= key), place = isWhole ? at : to + taken[to]++;
    found[place < nNegative ? place : place + nZeros] = places[isWhole ? key - n * Math.floor(key / n) : at];
  }
  return found;
};

// An array of the items of a typed one.
const listOf = items => {
  const found = new Array(items.length);
  for (let i = 0; i < found.length; i++) found[i] = items[i];
  return found;
};

class Table {
  // keeper: which rows there are, in order, null: all.  columns: [{title, width, value(row), write(row): text, key(row)?: to sort by, kind(row)?: class, bar(row)?: its share}],
  // the last is the name: fill(cell, row); isFixed: it depends on the row alone.  groups: null, or RowGroups
  constructor(holder, on) {
    this.holder = holder;
    this.on = on;
    this.sort = 0;
    this.down = true;
    this.chosen = -1;
    this.order = [];
    this.shown = [];  // the rows that are elements
    this.seen = {scrollTop: 0, clientHeight: 0, clientWidth: 0};  // when the table was painted, which it is at each change
    this.groups = null;
    this.pen = document.createElement("canvas").getContext("2d");
    this.measure = measured();
    this.head = element("div", {class: "row head", role: "row"});
    this.rows = element("div", {class: "rows", role: "rowgroup", tabindex: "0", "aria-label": `${on.title || "Functions"}; arrow keys select one`});
    holder.append(this.head, this.rows);
    holder.addEventListener("scroll", () => this.paint());
    new ResizeObserver(() => { if (holder.clientHeight !== this.seen.clientHeight || holder.clientWidth !== this.seen.clientWidth) this.paint(); }).observe(holder);
    this.rows.addEventListener("keydown", event => this.key(event));
    for (const type of ["beforeprint", "afterprint"]) addEventListener(type, () => this.paint(type === "beforeprint"));
  }
  show(columns, n) {
    this.columns = columns;
    this.n = n;
    const at = columns.findIndex(({title}) => title === this.title);  // the same column, of another width of the table
    this.sort = at >= 0 ? at : Math.min(this.sort, columns.length - 1);
    this.arrange();
  }
  arrange() {
    const {value: shown, key: value = shown} = this.columns[this.sort], sign = this.down ? -1 : 1;
    const found = this.keeper?.() ?? Uint32Array.from({length: this.n}, (_, i) => i);
    const sorted = rows => typeof value(rows[0] ?? 0) === "number" ? ranked(rows, value, this.down)
      : Array.from(rows, i => [value(i), i]).sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : 0) || a[1] - b[1]).map(([, i]) => i);
    this.order = listOf(sorted(found));
    this.kept = this.order;  // rows without groups
    if (this.groups) this.order = this.grouped(sorted);
    this.head.replaceChildren(...this.columns.map((column, k) => {
      const mine = k === this.sort;
      const button = element("button", {
        type: "button", title: `Sort by ${column.title}`,
        onclick: () => {
          this.down = mine ? !this.down : k !== this.columns.length - 1;
          this.sort = k;
          this.title = column.title;
          this.arrange();
        },
      }, column.title + (mine ? this.down ? " ▾" : " ▴" : ""));
      const cell = this.cell(column, k, {role: "columnheader", "aria-sort": mine ? this.down ? "descending" : "ascending" : "none"});
      cell.append(button);
      return cell;
    }));
    this.least = this.columns.slice(0, -1).reduce((sum, column) => sum + column.width, 128);
    this.head.style.minWidth = this.rows.style.minWidth = `${this.least}px`;
    this.holder.setAttribute("aria-rowcount", this.order.length + 1);
    this.paint();
  }
  // Groups, each followed by its rows if it is unfolded.
  grouped(sorted) {
    const {unfolded} = this.groups, members = this.groups.divided(this.order);
    return [...sorted([...members.keys()].sort((a, b) => a - b))].flatMap(group => unfolded.has(group) ? [group, ...sorted(members.get(group).sort((a, b) => a - b))] : [group]);
  }
  cell(column, k, properties) {
    const last = k === this.columns.length - 1;
    const cell = element("div", {class: last ? "cell name" : "cell", ...properties});
    if (!last) cell.style.width = `${column.width}px`;
    return cell;
  }
  paint(isPrinted = false) {
    if (!this.columns) return;
    this.room = Math.max(100, this.holder.clientWidth - this.columns.reduce((sum, column) => sum + column.width, 12));  // of a name
    const {scrollTop, clientHeight} = this.seen = {scrollTop: this.holder.scrollTop, clientHeight: this.holder.clientHeight, clientWidth: this.holder.clientWidth};
    const first = isPrinted ? 0 : Math.max(0, Math.floor(scrollTop / HEIGHT) - 5);
    const last = Math.min(this.order.length, isPrinted ? PRINTED : first + Math.ceil(clientHeight / HEIGHT) + 10);
    this.rows.style.height = `${(isPrinted ? last : this.order.length) * HEIGHT}px`;
    // Rows of the same functions stay, else their elements: to make one takes longer than to write other figures into it.
    const wanted = this.order.slice(first, last), before = new Map(this.shown.map(one => [one.i, one])), n = this.columns.length;
    const areSame = this.shown[0]?.cells.length === n, isMoved = areSame && 2 * wanted.filter(i => before.has(i)).length > wanted.length;
    const shown = wanted.map((i, k) => (areSame && (isMoved ? before.get(i) : this.shown[k])) || this.made());
    const kept = new Set(shown);
    for (const one of this.shown) if (!kept.has(one)) one.row.remove();
    let next = this.rows.firstChild;
    shown.forEach((one, k) => {
      if (one.row === next) next = next.nextSibling;
      else this.rows.insertBefore(one.row, next);
      this.write(one, first + k);
    });
    this.shown = shown;
    this.painted = this.chosen;
  }
  // A row that is still empty: its element, those of its cells, and what was written into them.
  made() {
    const row = element("div", {role: "row"}), cells = this.columns.map((column, k) => this.cell(column, k, {role: "cell"})), one = {row, cells, i: -1, seen: {}, texts: [], shares: []};
    row.addEventListener("click", () => this.choose(one.i));
    row.append(...cells);
    return one;
  }
  write(one, at) {
    const i = one.i = this.order[at], {row, cells, seen, texts, shares} = one, isGroup = this.isGroup(i), isChosen = i === this.chosen;
    const set = (name, value) => {
      if (seen[name] === value) return;
      if (value === undefined) row.removeAttribute(name);
      else row.setAttribute(name, value);
      seen[name] = value;
    };
    set("class", `row${isChosen ? " chosen" : ""}${!this.groups ? "" : isGroup ? " of-group" : " member"}`);
    set("aria-rowindex", at + 2);
    set("aria-selected", isChosen);
    set("aria-expanded", isGroup ? this.groups.unfolded.has(i) : undefined);
    if (seen.at !== at) row.style.top = `${(seen.at = at) * HEIGHT}px`;
    this.columns.forEach((column, k) => {
      const cell = cells[k], isName = column.fill !== undefined, kind = column.kind?.(i) || "", share = column.bar ? Math.round(1000 * column.bar(i)) / 10 : 0;
      const text = isName ? column.isFixed ? `${i} ${this.room}` : null : column.write(i);
      if (text === null || texts[k] !== text) {
        if (isName) {
          cell.replaceChildren();
          column.fill(cell, i);
        } else cell.textContent = text;
        texts[k] = text;
      }
      if (!isName && cell.style.width !== `${column.width}px`) cell.style.width = `${column.width}px`;
      if (!isName) cell.className = kind ? `cell ${kind}` : "cell";
      if ((shares[k] || 0) !== share) cell.style.background = share ? `linear-gradient(to right, var(--bar) ${share}%, transparent ${share}%)` : "";
      shares[k] = share;
    });
  }
  // A name as it fits the last column.
  fitting(name) {
    this.pen.font = "13px system-ui, -apple-system, Segoe UI, sans-serif";
    return nameThatFits(name, text => this.measure(this.pen, text) <= this.room);
  }
  isGroup(i) { return this.groups !== null && this.groups.isGroup(i); }
  choose(i) {
    if (this.isGroup(i)) {
      const {unfolded} = this.groups;
      unfolded[unfolded.has(i) ? "delete" : "add"](i);
      this.arrange();
      return;
    }
    this.chosen = i;
    this.paint();
    this.on.choose(this.groups ? this.groups.functionOf(i) : i);
  }
  // Marks a row that was selected elsewhere and scrolls to it; of a function in several groups the first one.
  mark(given) {
    const i = !this.groups || this.order.includes(given) ? given : this.order.find(row => !this.isGroup(row) && this.groups.functionOf(row) === given) ?? given;
    const at = this.order.indexOf(i), y = at * HEIGHT, {scrollTop, clientHeight} = this.seen;
    const isSeen = at < 0 || (y >= scrollTop && y + 2 * HEIGHT <= scrollTop + clientHeight);
    if (!isSeen) this.holder.scrollTop = Math.max(0, y - clientHeight / 2);
    if (isSeen && this.painted === i) return;
    this.chosen = i;
    this.paint();
  }
  key(event) {
    const at = this.order.indexOf(this.chosen);
    const page = Math.max(1, Math.floor(this.holder.clientHeight / HEIGHT) - 2);
    const isFolding = this.isGroup(this.chosen) && (event.key === "Enter" || event.key === (this.groups.unfolded.has(this.chosen) ? "ArrowLeft" : "ArrowRight"));
    if (isFolding) this.choose(this.chosen);
    const to = {
      ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.order.length - 1,
    }[event.key];
    if (to === undefined || !this.order.length) return;
    event.preventDefault();
    const i = this.order[Math.min(this.order.length - 1, Math.max(0, to))];
    this.mark(i);
    if (!this.isGroup(i)) this.on.choose(this.groups ? this.groups.functionOf(i) : i);
  }
}
