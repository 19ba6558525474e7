// Firefox Profiler's own importer and call tree, through its command line.
//
//   node viewer.mjs firefox FILE            a list of threads, {process, name, weightType, functions: [[name, self, total], ...]}
//   node viewer.mjs firefox FILE counters   a list of counters, {name, pid, thread, values: [...]}
//   node viewer.mjs firefox FILE range      the time axis in milliseconds, {start, end}
//   node viewer.mjs firefox FILE selected   the name of the thread that is selected at first
//
// The command line uses a server that it starts itself; its state is in our temporary folder, and we end it.
import {spawnSync} from 'node:child_process';
import {mkdtempSync, readdirSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const CLI = join(import.meta.dirname, '../../.viewers/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js');
let state;

function run(...words) {
  const env = {...process.env, PROFILER_CLI_SESSION_DIR: state};
  const done = spawnSync(process.execPath, [CLI, ...words], {env, encoding: 'utf8', maxBuffer: 1 << 30});
  if (done.status !== 0) throw new Error((done.stdout + done.stderr).trim());
  return done.stdout;
}

const json = (...words) => JSON.parse(run(...words, '--json'));

function load(file) {
  let said;
  try {
    return run('load', file);
  } catch (error) {
    said = error; // or the server starts more slowly than the command waits
  }
  for (let i = 0; i < 60; i++) {
    try {
      return run('profile', 'info');
    } catch (error) {
      if (/failed|unsupported|invalid|could not|unable/i.test(error.message)) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
    }
  }
  throw said;
}

function end() {
  spawnSync(process.execPath, [CLI, 'stop'], {env: {...process.env, PROFILER_CLI_SESSION_DIR: state}, timeout: 10000});
  for (const name of readdirSync(state).filter(name => name.endsWith('.json'))) {
    try {
      process.kill(JSON.parse(readFileSync(join(state, name), 'utf8')).pid, 'SIGKILL');
    } catch {
      // it has ended, or the file belongs to another program
    }
  }
  rmSync(state, {recursive: true, force: true});
}

const counters = () => json('counter', 'list').counters.map(counter =>
  ({name: counter.label, pid: counter.pid, thread: counter.mainThreadName, values: counter.graph}));
const range = () => json('thread', 'info', '--thread', 't-0').context.rootRange;
const selected = () => json('thread', 'info').context.selectedThreads[0].name;
const threads = () => json('thread', 'list', '--limit', '0').threads.map(thread => {
  const found = json('thread', 'functions', '--thread', thread.threadHandle, '--include-idle', '--limit', '0');
  const functions = found.functions.map(f => [f.name, f.selfSamples, f.totalSamples]);
  return {process: thread.processName, name: thread.name, weightType: found.weightType, functions};
});

export default (file, what) => {
  state = mkdtempSync(join(tmpdir(), 'profiler-cli-'));
  try {
    load(file);
    return {counters, range, selected}[what]?.() ?? threads();
  } finally {
    end();
  }
};
