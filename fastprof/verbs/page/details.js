// The panel of the selected function: its figures, its source lines, its callers and callees.
//
// page: {data, state, sources, assembly, transforms, rows(): those of the table, and of page.js: nameOf, labelOf, place, unit, base, shareText, shownColumns, rowFigure, wholeOf,
// ofThread, partTitle, isInclusiveKnown, calls(): list(fn, callee), choose, sandwich, selection(fn): of the selected box}
const detailsPanel = page => {
  const {data: {head, column, has}, state, sources, nameOf, labelOf, place, unit, base, shownColumns} = page;
  const {texts, compared} = head, files = column("function file"), objects = column("function object"), lines = column("function line");
  const cost = costs => compared ? (costs[state.event.new] || 0) - (costs[state.event.old] || 0) : costs[state.event.old] || 0;

  const callsTable = (fn, callee) => {
    const side = compared && !has("arc calls 0") ? 1 : 0;
    const mine = page.calls()(fn, callee).map(({other, costs, calls}) => ({other, cost: cost(costs), calls: calls[side]}))
      .sort((a, b) => Math.abs(b.cost) - Math.abs(a.cost));
    if (!mine.length) return element("p", {class: "place"}, fn < page.rows() || page.ofThread() ? "none" : "too small for this page");
    const scale = scaleOf(Math.max(...mine.map(({cost}) => Math.abs(cost))), unit(), mine.map(({cost}) => cost)), counted = mine.some(({calls}) => calls);
    const rows = mine.map(({other, cost, calls}) => {
      const open = element("button", {type: "button", title: `${nameOf(other)}\n${place(other)}`, onclick: () => page.choose(other, "details")}, bothEnds(labelOf(other)));
      const value = compared ? signed(cost, scale.write(cost)) : scale.write(cost);
      return element("tr", {}, element("td", {}, value),
        element("td", {}, percent(cost, base())),
        ...counted ? [element("td", {}, exact(calls))] : [], element("td", {}, open));
    });
    const heading = (compared ? "change " : "cost ") + scale.unit;
    return element("table", {class: "calls"},
      element("thead", {}, element("tr", {}, ...[heading, "%", ...counted ? ["calls"] : [], "function"]
        .map(text => element("th", {scope: "col"}, text)))),
      element("tbody", {}, ...rows));
  };

  const figures = fn => {
    const followed = page.ofThread() && !state.ranged;  // else those of all samples
    const value = (name, k) => followed ? page.rowFigure(name, k, fn) : column(`${name} ${k}`)[fn];
    const box = (what, name) => {
      const texts = shownColumns().map(k => {
        const side = compared ? k === state.event.old ? "old " : "new " : "";
        return `${side}${page.shareText(value(name, k), page.wholeOf(k, followed))}`;
      });
      return element("div", {title: shownColumns().map(k => exact(value(name, k))).join(" → ")},
        element("span", {}, what), texts.join(", "));
    };
    const isKnown = shownColumns().every(k => has(`row inclusive ${k}`));
    const boxes = [box("self", "row self"), ...isKnown ? [box("inclusive", "row inclusive")] : []];
    for (const side of followed ? [] : [0, 1])
      if (has(`row calls ${side}`) && column(`row calls ${side}`)[fn])
        boxes.push(element("div", {}, element("span", {}, compared ? `calls, ${side ? "new" : "old"}` : "calls"), exact(column(`row calls ${side}`)[fn])));
    return element("div", {class: "figures"}, ...boxes);
  };

  // How long single calls took, callees included.
  const durations = fn => {
    const ended = column("row ended")[fn];
    if (!ended) return [];
    const parts = [["minimum", "min"], ["median", "median"], ["90 %", "p90"], ["99 %", "p99"], ["maximum", "max"]]
      .map(([title, name]) => [title, column(`row ${name}`)[fn]]);
    const scale = scaleOf(parts.at(-1)[1], head.durations.unit, parts.map(([, value]) => value));
    return [element("h3", {}, `Single calls${page.partTitle() || state.ranged ? " (of all threads and the whole time)" : page.transforms.isActive ? " (without transforms)" : ""}`),
      element("div", {class: "figures"}, element("div", {}, element("span", {}, "ended"), exact(ended)),
        ...parts.map(([title, value]) => element("div", {title: `${exact(value)} ${head.durations.unit}`}, element("span", {}, title), withUnit(value, scale))))];
  };

  const nextLine = fn => {  // of the next function in its file; 0: it is the last one
    let next = 0;
    for (let other = 0; other < files.length; other++)
      if (files[other] === files[fn] && lines[other] > lines[fn] && (!next || lines[other] < next)) next = lines[other];
    return next;
  };

  const draw = () => {
    const fn = state.chosen, holder = byId("details"), known = page.isInclusiveKnown();
    if (fn < 0) {
      holder.replaceChildren(element("h2", {}, page.rows() ? "No function selected" : "No functions"),
        ...page.rows() ? [element("p", {class: "place"}, known
          ? "Click a box or a row to see the callers and callees of a function." : "Click a box or a row to see the costs of a function.")] : []);
      return;
    }
    const parts = [element("h2", {tabindex: "-1"}, nameOf(fn))], file = texts[files[fn]];
    parts.push(element("div", {class: "buttons"},
      ...known && fn < page.rows() ? [element("button", {type: "button", onclick: () => page.sandwich(fn)}, "Callers and callees (sandwich)")] : [],
      ...known ? [element("button", {type: "button", "aria-haspopup": "menu", onclick: event => page.transform(fn, event)}, "Transform ▾")] : []));
    if (file) parts.push(element("p", {class: "place"}, `source: ${file}${lines[fn] ? `:${lines[fn]}` : ""}`));
    if (texts[objects[fn]]) parts.push(element("p", {class: "place"}, `${objectTitle(page.data)}: ${texts[objects[fn]]}`));
    if (state.ranged) parts.push(element("p", {}, "Over the whole time:"));
    else if (page.partTitle()) parts.push(element("p", {}, page.ofThread() ? `In contexts of ${page.partTitle()}:` : "In all threads:"));
    if (fn < page.rows()) parts.push(figures(fn));
    parts.push(...page.selection(fn), ...fn < page.rows() ? durations(fn) : []);
    parts.push(...sources.panel(file, lines[fn], () => nextLine(fn), {
      columns: shownColumns(), compared, unit: unit(), isPart: page.ofThread(), draw,
    }));
    parts.push(...page.assembly.panel(nameOf(fn), texts[files[fn]], {
      columns: shownColumns(), sides: shownColumns().map(k => head.values[k].side), compared, unit: unit(), isPart: page.ofThread(),
    }));
    if (shownColumns().some(k => has(`row inclusive ${k}`)))
      parts.push(element("h3", {}, "Callers"), callsTable(fn, 0), element("h3", {}, "Callees"), callsTable(fn, 1));
    holder.replaceChildren(...parts);
  };
  return draw;
};
