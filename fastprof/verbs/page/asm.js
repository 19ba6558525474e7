// Instructions of the selected function with their self costs.
class Assembly {
  constructor({head}) {
    this.isThere = Boolean(head.asm);
    this.functions = new Map();  // by side, name and file: program and lines
    for (const [side, name, file, program, lines] of head.asm?.found || []) this.functions.set(`${side} ${name}\n${file}`, {program, lines});
    this.cut = head.asm?.cut || 0;
  }
  facts() { return this.cut ? [`instructions of ${plural(this.cut, "function")} do not fit this page`] : []; }
  // page: {columns: value columns shown, sides: of each, compared, unit, isPart: is only a part of the samples shown}
  panel(name, file, {columns, sides, compared, unit, isPart}) {
    if (!this.isThere) return [];
    const parts = sides.map((side, at) => ({side, k: columns[at], known: this.functions.get(`${side} ${name}\n${file}`)})).filter(({known}) => known);
    if (!parts.length) return [element("p", {class: "place"}, "The page has no instructions of this function.")];
    return parts.flatMap(({side, k, known: {program, lines}}) => {
      const costs = lines.map(line => line ? line[2][k] : 0), largest = Math.max(0, ...costs.map(Math.abs)), scale = scaleOf(largest, unit, costs);
      let isGap = false;
      const rows = lines.flatMap((line, at) => {
        if (!line) {
          isGap = true;
          return [];
        }
        const [address, text] = line, cell = element("td", {title: exact(costs[at])}, costs[at] ? scale.write(costs[at]) : "");
        const share = largest ? 100 * Math.abs(costs[at]) / largest : 0;
        if (share) cell.style.background = `linear-gradient(to left, var(--bar) ${share}%, transparent ${share}%)`;
        const row = element("tr", isGap ? {class: "gap"} : {}, element("td", {class: "number"}, address === "0" ? "?" : address), cell,
          element("td", {class: "code"}, text ?? "(not disassembled)"));
        isGap = false;
        return [row];
      });
      const title = `Instructions${compared ? side ? ", new" : ", old" : ""}`;
      return [element("h3", {}, title, isPart ? " (of all samples)" : ""),
        element("div", {class: "lines asm", tabindex: "0", role: "group", "aria-label": title}, element("table", {}, element("thead", {}, element("tr", {},
          ...["address", `self ${scale.unit}`.trim(), program.slice(program.lastIndexOf("/") + 1)].map(text => element("th", {scope: "col"}, text)))),
        element("tbody", {}, ...rows)))];
    });
  }
}
