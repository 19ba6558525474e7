// Memory over time, of a profile with snapshots (Massif): stacks on extra heap on heap.
//
// series: {unit, snapshots: [[number, time, heap bytes, extra bytes, stacks bytes, 1 if its tree is shown], ...]}
const drawSeries = series => {
  const WIDE = 1000, HIGH = 140, KINDS = ["heap", "extra heap", "stacks"];
  const {unit, snapshots} = series, times = snapshots.map(([, time]) => time);
  const first = Math.min(...times), last = Math.max(...times), totals = snapshots.map(([, , ...sizes]) => sizes[0] + sizes[1] + sizes[2]);
  const most = Math.max(...totals, 1), round = x => Math.round(x * 10) / 10;
  const x = time => round(last > first ? WIDE * (time - first) / (last - first) : WIDE / 2), y = size => round(HIGH - HIGH * size / most);
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
    KINDS.map((kind, k) => sizes[k] ? `, ${kind} ${figure(sizes[k], "bytes")}` : "").join("") + (sizes[3] ? ", shown above" : "");
  const marks = snapshots.map((one, i) => make("line", {x1: x(one[1]), x2: x(one[1]), y1: y(totals[i]), y2: HIGH, class: one[5] ? "mark shown" : "mark"},
    make("title", {}, textOf(one, i))));
  const peak = totals.indexOf(Math.max(...totals));
  const label = `Memory over time: at most ${figure(totals[peak], "bytes")}, in snapshot ${snapshots[peak][0]}`;
  const used = KINDS.map((kind, k) => [kind, k]).filter(([, k]) => snapshots.some(one => one[2 + k]));
  byId("series").append(element("h2", {}, "Memory over time"),
    make("svg", {viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": label}, ...areas, ...marks),
    element("p", {}, `${exact(first)} to ${exact(last)} ${unit}; at most ${figure(totals[peak], "bytes")}. `,
      ...used.flatMap(([kind, k]) => [element("span", {class: `key series${k}`}), ` ${kind}  `]),
      snapshots.some(one => one[5]) ? "A line marks a snapshot shown above." : ""));
};
