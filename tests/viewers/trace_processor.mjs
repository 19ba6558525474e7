// Perfetto's own trace processor (WebAssembly), as its UI runs it in a worker, here in node.
//
//   node viewer.mjs trace_processor FILE SQL...        returns the rows of each query: [[[cell, ...], ...], ...]
//
// Numbers that a double cannot hold are texts.  Requests and replies are fields 1 with a TraceProcessorRpc
// (protos/perfetto/trace_processor/trace_processor.proto).
import {closeSync, openSync, readFileSync, readSync} from 'node:fs';
import {basename, join} from 'node:path';
import vm from 'node:vm';

const ENGINE = join(import.meta.dirname, '../../.viewers/perfetto');
const APPEND = 1, FINALIZE = 2, QUERY = 3; // methods

const varint = n => (n < 128 ? [n] : [(n % 128) | 128, ...varint(Math.floor(n / 128))]);
const number = (field, n) => Buffer.from([...varint(field * 8), ...varint(n)]);
const bytes = (field, b) => Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(b.length)]), b]);

function* varints(buffer, at = {p: 0}) {
  while (at.p < buffer.length) {
    let v = 0n, shift = 0n, byte;
    do {
      byte = buffer[at.p++];
      v |= BigInt(byte & 127) << shift;
      shift += 7n;
    } while (byte > 127);
    yield BigInt.asIntN(64, v);
  }
}

// [field, value]: a BigInt, or the bytes
function* fields(buffer) {
  const at = {p: 0};
  const next = () => varints(buffer, at).next().value;
  while (at.p < buffer.length) {
    const tag = Number(next()), wire = tag & 7;
    if (wire === 0) yield [tag >>> 3, next()];
    else {
      const n = wire === 2 ? Number(next()) : wire === 1 ? 8 : 4;
      yield [tag >>> 3, buffer.subarray(at.p, at.p + n)];
      at.p += n;
    }
  }
}

class TraceProcessor {
  static async start() {
    const self = new TraceProcessor();
    let ready;
    const started = new Promise(done => (ready = done));
    const read = name => readFileSync(join(ENGINE, basename(String(name))));
    const world = {
      console: {log() {}, warn() {}, error() {}},
      TextDecoder, TextEncoder, URL, performance, setTimeout, clearTimeout, queueMicrotask, crypto: globalThis.crypto,
      location: {href: 'file:///engine_bundle.js', pathname: '/engine_bundle.js'},
      WorkerGlobalScope: function () {},
      importScripts() {},
      XMLHttpRequest: class {
        open(_, name) { this.name = name; }
        send() {
          this.status = 200;
          this.response = new Uint8Array(read(this.name)).buffer;
          this.onload?.();
        }
      },
    };
    world.self = world;
    vm.createContext(world);
    // from the engine's context, because it tests for its own types
    const wasm = vm.runInContext('WebAssembly', world), {Instance} = wasm;
    wasm.Instance = class extends Instance {
      constructor(...args) {
        super(...args);
        setTimeout(ready, 20);
      }
    };
    vm.runInContext(read('engine_bundle.js').toString(), world);
    self.Bytes = vm.runInContext('Uint8Array', world);
    self.port = {postMessage: data => self.replies.push(Buffer.from(data)), onmessage: null};
    world.onmessage({data: self.port});
    await started;
    return self;
  }

  replies = [];
  seq = 0;

  // The content of field `want` of each reply.
  *call(method, args, want) {
    const request = bytes(1, Buffer.concat([number(1, this.seq++), number(2, method), args]));
    this.replies = [];
    const own = new this.Bytes(request.length);
    own.set(request);
    this.port.onmessage({data: own});
    for (const [, reply] of fields(Buffer.concat(this.replies)))
      for (const [field, value] of fields(reply)) {
        if (field === 5) throw new Error(String(value));
        if (field === want) yield value;
      }
  }

  load(file) {
    const fd = openSync(file, 'r'), chunk = Buffer.alloc(16 << 20);
    for (let n; (n = readSync(fd, chunk)) > 0; )
      for (const reply of this.call(APPEND, bytes(101, chunk.subarray(0, n)), 201))
        for (const [field, error] of fields(reply)) if (field === 2) throw new Error(String(error));
    closeSync(fd);
    for (const reply of this.call(FINALIZE, Buffer.alloc(0), 212))
      for (const [field, error] of fields(reply)) if (field === 1) throw new Error(String(error));
  }

  query(sql) {
    let width = 0;
    const cells = [];
    for (const reply of this.call(QUERY, bytes(103, bytes(1, Buffer.from(sql))), 203))
      for (const [field, value] of fields(reply)) {
        if (field === 1) width++;
        else if (field === 2 && value.length) throw new Error(String(value));
        else if (field === 3) this.cells(value, cells);
      }
    const rows = [];
    for (let i = 0; width && i < cells.length; i += width) rows.push(cells.slice(i, i + width));
    return rows;
  }

  // A batch: types of cells, then the numbers and texts one after the other.
  cells(batch, into) {
    const types = [], whole = [], real = [];
    let texts = [];
    for (const [field, value] of fields(batch)) {
      if (field === 1) types.push(...value);
      else if (field === 2) whole.push(...varints(value));
      else if (field === 3) for (let p = 0; p < value.length; p += 8) real.push(value.readDoubleLE(p));
      else if (field === 5) texts = String(value).split('\0');
    }
    whole.reverse(), real.reverse(), texts.reverse();
    for (const type of types) {
      const n = type === 2 ? whole.pop() : 0n;
      into.push(type === 2 ? (Number.isSafeInteger(Number(n)) ? Number(n) : String(n))
        : type === 3 ? real.pop() : type === 4 ? texts.pop() : null);
    }
  }
}

export default async (file, ...queries) => {
  const processor = await TraceProcessor.start();
  processor.load(file);
  return queries.map(sql => processor.query(sql));
};
