// Figures and elements.  Names come from the profile, so they are never parsed as markup: only textContent is set.
const element = (tag, properties = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children.map(child => typeof child === "string" ? document.createTextNode(child) : child));
  return node;
};
const byId = id => document.getElementById(id);

// As in cli/text.py: a column has one unit and three digits; a figure of which that would show less than two digits has
// its own unit, and so has each figure if most of them would be 0.00.
// [name, in smallest units, the figure from which the next unit is used]
const TIME = [["ns", 1, 1e3], ["µs", 1e3, 999.5e3], ["ms", 1e6, 999.5e6], ["s", 1e9, Infinity]];
const BYTES = [["B", 1, 1024], ["KiB", 1024, 1048576], ["MiB", 1048576, 1073741824], ["GiB", 1073741824, Infinity]];
const COUNT = [["", 1, 1e9], ["G", 1e9, 999.5e9], ["T", 1e12, Infinity]];
const COUNT_ALONE = [["", 1, 1e4], ["k", 1e3, 999.5e3], ["M", 1e6, 999.5e6], ...COUNT.slice(1)];
// A Map: units come from the profile, and every object has a `constructor`.
const UNITS = new Map(Object.entries({
  nanoseconds: [1, TIME], ns: [1, TIME], microseconds: [1e3, TIME], us: [1e3, TIME], milliseconds: [1e6, TIME],
  ms: [1e6, TIME], seconds: [1e9, TIME], s: [1e9, TIME],
  bytes: [1, BYTES], byte: [1, BYTES], kilobytes: [1024, BYTES], megabytes: [1048576, BYTES],
}));

// lost: the share of figures that may be 0.00; beside: the largest figure of a column beside it, for one unit in both
const scaleOf = (largest, unit, figures = [], {counts = COUNT, lost = 0.5, beside = 0} = {}) => {
  const [factor, scales] = UNITS.get(unit.toLowerCase()) || [1, counts];
  const size = Math.abs(largest) * factor, larger = Math.max(size, Math.abs(beside) * factor);
  const [name, divisor] = scales.find(([, , below]) => larger < below) || scales.at(-1);
  const places = divisor === 1 || size >= 99.95 * divisor ? 0 : size >= 9.995 * divisor ? 1 : 2;
  const counted = figures.filter(value => value), least = divisor / 10 ** places / 2;
  if (counted.filter(value => Math.abs(value) * factor < least).length > lost * counted.length)
    return {unit: "", write: value => value ? figure(value, unit, COUNT_ALONE) : "0"};
  const isShort = value => value && divisor > 1 && Math.abs(value) * factor < 19 * least;  // it rounds to less than 10 parts
  return {unit: name, write: value => isShort(value) && alone(value, unit, name) || fixed(value * factor / divisor, places)};
};
// A figure in its own unit, which is left out if it is that of the column; "" for a plain count in a column of larger ones,
// where it would look like one of them.
const alone = (value, unit, columns) => {
  const scale = scaleOf(value, unit, [], {counts: COUNT_ALONE});
  return scale.unit || !columns ? scale.write(value) + (scale.unit !== columns ? ` ${scale.unit}` : "") : "";
};
const numberFormat = places => new Intl.NumberFormat("en-US", {minimumFractionDigits: places, maximumFractionDigits: places});
const numberFormats = [];  // by decimal places; making one takes longer than hundreds of numbers
const fixed = (value, places) => (numberFormats[places] ??= numberFormat(places)).format(value).replace(/^-(?=0(\.0*)?$)/, "");
const withUnit = (value, scale) => scale.write(value) + (scale.unit && " " + scale.unit);
const figure = (value, unit, counts) => withUnit(value, scaleOf(value, unit, [], {counts}));
// Figures to compare, in one unit.
const pair = (values, unit) => {
  const scale = scaleOf(Math.max(...values.map(Math.abs)), unit);
  return values.map(value => withUnit(value, scale));
};
const exactFormat = new Intl.NumberFormat("en-US");
const exact = value => exactFormat.format(value);
const plural = (n, what) => `${exact(n)} ${what}${n === 1 ? "" : "s"}`;
const percent = (value, total) => total ? (100 * value / total).toFixed(1).replace(/^-0\.0$/, "0.0") + " %" : "-";
const signed = (value, text) => (value > 0 ? "+" : "") + text;

// Shortens a long name: drops template arguments, keeps other uses of <>:
// a::b<int>::c  a::b<…>::c,  <A<int> as B>::c  <A<…> as B>::c,  operator<<
const shortName = name => {
  if (name.length < 50) return name;
  const parts = name.split(/(operator\s*(?:<=>|<<=?|>>=?|<=|>=|->\*?|<|>)|->|[<>])/);
  const open = [];  // of each <, is it left out?
  let found = "", last = "";
  for (const part of parts) {
    const inside = open.includes(true);
    if (part === "<") {
      open.push(inside || /[\w\]]$/.test(last));
      if (!inside) found += open.at(-1) ? "<…" : "<";
    } else if (part === ">") {
      if (!open.length) return name;
      open.pop();
      if (!open.includes(true)) found += ">";
    } else if (!inside) found += part;
    last = part;
  }
  return open.length ? name : found;
};

// a::b(int, char*) const  a::b(…) const,  main.(*T).f and operator() stay
const withoutArguments = name => {
  const end = /\)[ \w&]*$/.exec(name)?.index ?? -1;
  let depth = 0, at = end;
  for (; at >= 0; at--) {
    if (name[at] === ")") depth++;
    else if (name[at] === "(" && !--depth) break;
  }
  return at > 0 && end > at + 1 && /[\w>)\]]/.test(name[at - 1]) ? `${name.slice(0, at)}(…)${name.slice(end + 1)}` : name;
};

// A name without directories and packages: run (/usr/lib/a.py:3)  run (a.py:3),  java/util/HashMap.get  HashMap.get,
// java.util.HashMap.get  HashMap.get,  operator/ and classes of lambdas (Work$$Lambda+0x7a08/623247230.run) stay
const withoutPath = name => name.replace(/(?<![\w.$@+~%-])(?:\w+:\/\/)?\/?(?:(?!operator\/)[\w.$@+~%-]+\/)+(?=[A-Za-z_$(*])/g, "")
  .replace(/(^|[\s(<,;])(?:[a-z_][\w$]*\.){2,}(?=[A-Z])/g, "$1") || name;

// The last part of a name, if it is one: get of HashMap.get, push_back(…) of std::vector<…>::push_back(…).
const ownName = name => /^(?!\[).*(?:::|[.\/])(?!(?:part|constprop|isra|cold|lto_priv|llvm|func)\b)([A-Za-z_~][^.:\/]*)$/.exec(name)?.[1] ?? name;

// The first `n` characters of a text, of which the end is more important than the middle: std::v…::push_back
const middleOf = (text, n) => n >= text.length ? text : n < 8 ? `${text.slice(0, n)}…` : `${text.slice(0, Math.ceil(n / 2))}…${text.slice(-Math.floor(n / 2))}`.replace(/…{2,}/, "…");

// A name, if it does not fit without zeros of addresses, arguments and packages, then without its middle; where little fits
// its last part.  "": nothing fits.  fits(text): truth
const nameThatFits = (name, fits) => {
  let text = name.length > 400 ? middleOf(name, 400) : name;
  for (const shorter of [text => text.replace(/^0x0+(?=[\da-f])/i, "0x"), withoutArguments, withoutPath]) if (!fits(text)) text = shorter(text);
  const most = all => {
    if (fits(all)) return all.length;
    let most = 0, not = all.length;
    while (not - most > 1) {
      const middle = (most + not) >> 1;
      if (fits(middleOf(all, middle))) most = middle;
      else not = middle;
    }
    return most;
  };
  let n = most(text);
  if (n < Math.min(10, text.length)) n = most(text = ownName(text));
  return n < Math.min(3, text.length) ? "" : middleOf(text, n);
};

// The width of a text as a pen writes it, whose font is always the same: to measure it takes longer than to look it up.
const measured = () => {
  const known = new Map();
  return (pen, text) => {
    if (!known.has(text)) {
      if (known.size === 20_000) known.clear();
      known.set(text, pen.measureText(text).width);
    }
    return known.get(text);
  };
};

// A name of which both ends stay where it does not fit: its middle gets three dots.
const bothEnds = (text, tail = 15) => text.length < tail + 6 ? text
  : element("span", {class: "ends"}, element("span", {}, text.slice(0, -tail)), element("span", {}, text.slice(-tail)));

// The package or namespace in a function's name: `net/http` of Go's net/http.(*Server).Serve, `java.util` of
// java.util.HashMap.get and java/util of java/util/HashMap.get, Work of Work.main and Work$Square.run, `std` of
// std::vector<int>::push_back, "" of main.
const packageOf = name => {
  const known = /^\w*(::|$)/.exec(name);  // most names, which are fast then
  if (known) return known[1] ? name.slice(0, name.indexOf("::")) : "";
  const path = name.replace(/^(?:non-virtual thunk to |virtual thunk to |<)+/, "").split(/[<([ ]/, 1)[0]
    .replace(/(?:\.(?:part|constprop|isra|cold|lto_priv|llvm)(?:\.\d+)?)+$|@@?[A-Z]\w*(?:\.\w+)*$|(?:\+0x[\da-f]+(?:\/\d+)?|\/(?:0x[\da-f]+|\d+))(?=\.)/, "");  // clones, versions of symbols, numbers of classes
  const slash = path.lastIndexOf("/");
  if (path.includes("::")) return path.slice(0, path.indexOf("::"));
  if (slash > 0 && /^[A-Z][\w$]*\./.test(path.slice(slash + 1))) return path.slice(0, slash);  // a class of Java
  if (slash >= 0) return path.slice(0, path.indexOf(".", slash) < 0 ? slash : path.indexOf(".", slash));
  const parts = path.replace(/\.func\d.*/, "").split(".").slice(0, -1);
  if (parts.length > 1 && /^[A-Z]/.test(parts.at(-1))) parts.pop();
  return parts.join(".").replace(/^([A-Z]\w*)\$.*/, "$1");  // a class within one that has no package
};

// The search as a regular expression, or as plain text if it is not a valid one; null: no search.
const pattern = text => {
  if (!text) return null;
  try {
    return new RegExp(text, "i");
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  }
};

// Traces have categories in place of objects, which are files.
const objectTitle = data => data.objectTitle ??=
  data.head.durations && !data.column("function object").some(object => /[/\\]/.test(data.head.texts[object])) ? "category" : "object";
