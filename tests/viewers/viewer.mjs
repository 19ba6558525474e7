// What the scripts of this folder find in a file.
//
//   node viewer.mjs SCRIPT ARGUMENT...   prints JSON.  Refused: exit code 1, and the viewer's message
//   node viewer.mjs                      answers each line of its input, [SCRIPT, ARGUMENT...] as JSON, with a line:
//                                        {"value": ...} or {"refused": MESSAGE}
//
// Tests use the second form, so a browser starts once, and not for each file.
import {createInterface} from 'node:readline';

async function answer(script, ...args) {
  try {
    const {default: of} = await import(`./${script}.mjs`);
    return {value: await of(...args)};
  } catch (error) {
    return {refused: error.message.slice(0, 1000)};
  }
}

// Some engines keep node alive, and a text may take a while to go through a pipe.
const end = (stream, text, code) => stream.write(text + '\n', () => process.exit(code));

if (process.argv.length > 2) {
  const {value, refused} = await answer(...process.argv.slice(2));
  if (refused === undefined) end(process.stdout, JSON.stringify(value), 0);
  else end(process.stderr, refused, 1);
} else {
  for await (const line of createInterface({input: process.stdin}))
    process.stdout.write(JSON.stringify(await answer(...JSON.parse(line))) + '\n');
  process.exit();
}
