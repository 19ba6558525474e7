// The data: a head (JSON) and typed columns, see __init__.py and content.py.
const NONE = 0xffffffff;
const TYPES = {u1: Uint8Array, u4: Uint32Array, f8: Float64Array};

const bytesOfBase64 = text => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
};

const inflate = async bytes => {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

// A column's bytes are in planes: the lowest byte of each item first.
const fromPlanes = (planes, Type, n) => {
  if (Type === Uint32Array) {
    const items = new Type(n);
    for (let i = 0; i < n; i++) items[i] = planes[i] | planes[n + i] << 8 | planes[2 * n + i] << 16 | planes[3 * n + i] << 24;
    return items;
  }
  const width = Type.BYTES_PER_ELEMENT;
  const bytes = new Uint8Array(n * width);
  for (let k = 0; k < width; k++)
    for (let i = 0, from = k * n; i < n; i++) bytes[i * width + k] = planes[from + i];
  return new Type(bytes.buffer);
};

const readData = async () => {
  const bytes = await inflate(bytesOfBase64(document.getElementById("data").textContent));
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const packed = new Map(), columns = new Map();  // those that were used
  let at = 4 + length;
  for (const [name, type, n] of head.columns) {
    const Type = TYPES[type], size = n * Type.BYTES_PER_ELEMENT;
    packed.set(name, [bytes.subarray(at, at + size), Type, n]);
    at += size;
  }
  const empty = new Float64Array(0);
  const column = name => {
    if (!columns.has(name)) columns.set(name, packed.has(name) ? fromPlanes(...packed.get(name)) : empty);
    return columns.get(name);
  };
  return {head, column, has: name => packed.has(name), replace: (name, items) => columns.set(name, items)};
};
