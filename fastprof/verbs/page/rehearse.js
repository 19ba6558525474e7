// A browser compiles a loop well only after it has run for a while, which takes as long as a transform of half a million
// contexts does then.  So in idle time a page of many contexts transforms a small part of itself, which nobody sees.
const REHEARSED = 2000, FROM = 50_000, TIMES = 16;  // contexts; the least number of a page that needs it

const rehearse = (data, view, columns) => {
  if (data.column("context up").length < FROM) return;
  const part = {...data, column: name => name.startsWith("context ") ? data.column(name).subarray(0, REHEARSED) : data.column(name)};
  const transforms = new Transforms(part), names = data.column("function name"), functions = names.length, {texts} = data.head, [k] = columns;
  const steps = [() => [], fn => [["hide", `^${literal(texts[names[fn]])}$`]], () => [["collapse-recursion", ""]], fn => [["focus", `^${literal(texts[names[fn]])}$`]], () => [["collapse-object", "."]]];
  let before = null, n = 0;
  const run = () => {
    if (!n) view.tree.figuresOf(k, functions);  // which a first transform needs, too
    const base = transforms.trees.get("-1"), fn = base?.n > 1 ? base.fn[1 + n % (base.n - 1)] : NONE;
    transforms.steps = fn === NONE ? [] : steps[n % steps.length](fn);
    const tree = transforms.tree(-1);
    if (!tree.self) tree.take(data.head.values.length, k => part.column(`context self ${k}`), "");
    tree.arrange(columns, false, null);
    new TreeBoxes(tree).visible(0, 1, 0.01);
    new GroupBoxes(tree, -1).visible(0, 1, 0.01);
    tree.arcsOf(fn, columns, []);
    const figures = tree.figuresOf(k, functions)["row self"];
    if (figures !== before) ranked(extremes(before = figures, functions), i => figures[i], true);
    largestFew(figures);
    for (const key of [...transforms.trees.keys()]) if (key !== "-1") transforms.trees.delete(key);
  };
  const idle = window.requestIdleCallback || (work => setTimeout(() => work({timeRemaining: () => 10}), 50));
  const go = deadline => {
    for (; n < TIMES && deadline.timeRemaining() > 4; n++) run();
    if (n < TIMES) idle(go);
  };
  idle(go);
};
