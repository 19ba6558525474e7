// Memory over time, of a profile with snapshots (Massif, heaptrack, memray): stacks on extra heap on heap, and as a step line what was
// resident, at a scale of its own if it is much larger.  The same as a table below.
//
// series: {unit, snapshots: [[number, time, heap bytes, extra bytes, stacks bytes, 1 if its tree is shown, resident bytes], ...]}
const APART = 4;
const drawSeries = series => {
  const WIDE = 1000, HIGH = 140, KINDS = ["heap", "extra heap", "stacks"];
  const {unit, snapshots} = series, times = snapshots.map(([, time]) => time);
  const first = Math.min(...times), last = Math.max(...times), totals = snapshots.map(([, , ...sizes]) => sizes[0] + sizes[1] + sizes[2]);
  const resident = snapshots.map(one => one[6]), hasResident = resident.some(size => size > 0);
  const mostResident = Math.max(...resident), isApart = mostResident > APART * Math.max(...totals);
  const most = Math.max(...totals, ...isApart ? [] : resident, 1), round = x => Math.round(x * 10) / 10;
  const x = time => round(last > first ? WIDE * (time - first) / (last - first) : WIDE / 2), y = (size, of = most) => round(HIGH - HIGH * size / of);
  const yResident = size => y(size, isApart ? mostResident : most);
  const make = (tag, properties, ...children) => {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(properties)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const upTo = (snapshot, kinds) => snapshot.slice(2, 2 + kinds).reduce((sum, size) => sum + size, 0);
  const areas = KINDS.map((_, k) => {
    const edge = kinds => snapshots.map(one => `${x(one[1])},${y(upTo(one, kinds))}`);
    return make("polygon", {points: [...edge(k + 1), ...edge(k).reverse()].join(" "), class: `series${k}`});
  });
  const textOf = ([number, time, ...sizes], i) => `snapshot ${number} at ${exact(time)} ${unit}: ${figure(totals[i], "bytes")}` +
    KINDS.map((kind, k) => sizes[k] ? `, ${kind} ${figure(sizes[k], "bytes")}` : "").join("") +
    (resident[i] ? `, resident ${figure(resident[i], "bytes")}` : "") + (sizes[3] ? ", shown above" : "");
  const steps = snapshots.flatMap((one, i) => [...i ? [`${x(one[1])},${yResident(resident[i - 1])}`] : [], `${x(one[1])},${yResident(resident[i])}`]);
  if (hasResident) areas.push(make("polyline", {points: steps.join(" "), class: "resident"}));
  const marks = snapshots.map((one, i) => make("line", {x1: x(one[1]), x2: x(one[1]), y1: y(totals[i]), y2: HIGH, class: one[5] ? "mark shown" : "mark"},
    make("title", {}, textOf(one, i))));
  const peak = totals.indexOf(Math.max(...totals));
  const label = `Memory over time: at most ${figure(totals[peak], "bytes")}, in snapshot ${snapshots[peak][0]}`;
  const columns = [...KINDS.map((kind, k) => [kind, one => one[2 + k]]), ["resident", one => one[6]]].filter(([, size]) => snapshots.some(one => size(one)));
  const table = () => element("table", {class: "calls"}, element("tr", {}, ...["snapshot", unit, ...columns.map(([kind]) => kind), ""].map(title => element("th", {scope: "col"}, title))),
    ...snapshots.map(one => element("tr", {}, ...[exact(one[0]), exact(one[1]), ...columns.map(([, size]) => figure(size(one), "bytes")), one[5] ? "shown above" : ""].map(text => element("td", {}, text)))));
  const asTable = element("details", {ontoggle: () => { if (!asTable.querySelector("table")) asTable.append(table()); }}, element("summary", {}, "As a table"));
  const used = KINDS.map((kind, k) => [kind, k]).filter(([, k]) => snapshots.some(one => one[2 + k]));
  byId("series").append(element("h2", {}, "Memory over time"),
    make("svg", {viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": label}, ...areas, ...marks),
    element("p", {}, `${exact(first)} to ${exact(last)} ${unit}; at most ${figure(totals[peak], "bytes")}${hasResident ? `, resident ${figure(mostResident, "bytes")}${isApart ? ", at its own scale" : ""}` : ""}. `,
      ...used.flatMap(([kind, k]) => [element("span", {class: `key series${k}`}), ` ${kind}  `]), ...hasResident ? [element("span", {class: "key resident"}), " resident  "] : [],
      snapshots.some(one => one[5]) ? "A line marks a snapshot shown above." : ""), asTable);
};
