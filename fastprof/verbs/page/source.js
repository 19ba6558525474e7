// Source lines of the selected function's file, with their costs.
const MOST_LINES = 2000;  // shown at once

class Sources {
  constructor({head, column}) {
    const {found = [], missing = [], cut = []} = head.sources || {};
    this.isThere = Boolean(head.sources);
    this.missing = missing;
    this.cut = cut;
    this.column = column;
    this.files = new Map();  // by name: the positions of its lines, their numbers and texts
    const fileOf = column("line file"), steps = column("line number");
    for (const [name, text] of found) this.files.set(name, {at: [], numbers: [], texts: text.split("\n")});
    for (let i = 0, number = 0; i < fileOf.length; i++) {
      const file = this.files.get(found[fileOf[i]][0]);
      number = steps[i] + (file.at.length ? number : 0);
      file.at.push(i);
      file.numbers.push(number);
    }
    this.isWhole = false;  // all lines of the file, not only the function's
  }
  facts() {
    const named = (names, what) => names.length ? [`${what}: ${names.slice(0, 5).join(", ")}${names.length > 5 ? " …" : ""}`] : [];
    return [...named(this.missing, "files not found"), ...named(this.cut, "files with lines that do not fit this page")];
  }
  // The function's lines: from its first to that of the next function of the file, nextOf(); first 0: not known.
  // page: {columns: value columns shown, compared, unit, totals, isPart: is only a part of the samples shown}
  panel(name, first, nextOf, page) {
    if (!this.isThere || !name) return [];
    const file = this.files.get(name);
    if (!file) {
      const why = this.missing.includes(name) ? "The source file was not found." : this.cut.includes(name) ? "The source file does not fit this page." : "The page has no source lines of this file: it costs too little.";
      return [element("p", {class: "place"}, why)];
    }
    const {columns, compared, unit, totals, isPart} = page, {column} = this, next = nextOf();
    const own = columns.map(k => column(`line self ${k}`)), calls = columns.map(k => column(`line calls ${k}`));
    const isMine = number => this.isWhole || !first || (number >= first - 2 && (!next || number < next));
    const mine = [...file.numbers.keys()].filter(i => isMine(file.numbers[i]));
    if (!mine.length) mine.push(...file.numbers.keys());
    const cut = mine.length - MOST_LINES;
    if (cut > 0) mine.length = MOST_LINES;
    const hasCalls = mine.some(i => calls.some(costs => costs[file.at[i]]));
    const shown = compared ? own : [...own, ...hasCalls ? calls : []];
    const titles = compared ? columns.length > 1 ? ["old", "new"] : ["self"] : ["self", "calls"];
    const figures = shown.map(costs => mine.map(i => costs[file.at[i]]));
    const all = figures.flat(), largest = Math.max(0, ...own.map(costs => Math.max(0, ...mine.map(i => Math.abs(costs[file.at[i]])))));
    const scale = scaleOf(all.reduce((a, b) => Math.max(a, Math.abs(b)), 0), unit, all);
    let before = 0;
    const rows = mine.map((i, row) => {
      const number = file.numbers[i], isGap = before && number > before + 1;
      before = number;
      const cells = figures.map((costs, k) => {
        const cell = element("td", {title: exact(costs[row])}, costs[row] ? scale.write(costs[row]) : "");
        const share = k < own.length && largest ? 100 * Math.abs(costs[row]) / largest : 0;
        if (share) cell.style.background = `linear-gradient(to left, var(--bar) ${share}%, transparent ${share}%)`;
        return cell;
      });
      const text = column("line known")[file.at[i]] ? file.texts[i] : "(the file has no such line)";
      return element("tr", isGap ? {class: "gap"} : {}, element("td", {class: "number"}, `${number}`), ...cells, element("td", {class: "code"}, text));
    });
    const toggle = first ? [element("button", {type: "button", class: "whole", onclick: () => {
      this.isWhole = !this.isWhole;
      page.draw();
    }}, this.isWhole ? "Only this function" : "All lines with costs")] : [];
    return [
      element("h3", {}, "Source lines", isPart ? " (of all samples)" : ""),
      element("div", {class: "lines", tabindex: "0", role: "group", "aria-label": "Source lines"}, element("table", {}, element("thead", {}, element("tr", {},
        ...["line", ...titles.slice(0, shown.length).map(title => `${title} ${scale.unit}`.trim()), name.slice(name.lastIndexOf("/") + 1)].map(text => element("th", {scope: "col"}, text)))),
      element("tbody", {}, ...rows))),
      ...cut > 0 ? [element("p", {class: "place"}, plural(cut, "more line"))] : [], ...toggle,
    ];
  }
}
