// Texts of times and points in time of a timeline: nanoseconds, or ticks if the length of a tick is unknown.
const timeTexts = (head, zoomed) => {
  const hertz = head.time && head.time.ticks_per_second, perTick = hertz ? 1e9 / hertz : 1;
  const text = ticks => hertz ? figure(Math.round(ticks * perTick), "ns") : `${exact(Math.round(ticks))} ticks`;
  // Points in time: in the unit of the latest, with enough digits to distinguish neighbours.
  const axisText = (latest, step) => {
    if (!hertz) return ticks => `${exact(Math.round(ticks))} ticks`;
    const [unit, divisor] = TIME.find(([, , below]) => latest * perTick < below);
    const places = divisor === 1 ? 0 : Math.max(0, Math.ceil(-Math.log10(step * perTick / divisor) - 1e-9));
    return ticks => `${fixed(ticks * perTick / divisor, places)} ${unit}`;
  };
  return {
    perTick, text,
    begin(ticks) {
      const [from, to] = zoomed();
      return axisText(head.time.length, (to - from) * head.time.length / 1e4)(ticks);
    },
    // ticks of the time axis at round times, as shares of the whole time
    marks(from, to, most) {
      const length = head.time.length || 1, least = (to - from) * length * perTick / most;
      const power = 10 ** Math.floor(Math.log10(least));
      const step = [1, 2, 5, 10].find(n => n * power >= least) * power;
      const write = axisText(to * length, step / perTick);
      const found = [], share = step / perTick / length;
      for (let i = Math.ceil(from / share); i * share < to && found.length <= most; i++) found.push([i * share, write(i * share * length)]);
      return found;
    },
  };
};
