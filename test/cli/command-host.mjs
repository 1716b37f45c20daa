/** Runs commands one after the other in this one process, each as its parent sends it. The build must be fresh. */
import { Readable } from 'node:stream';
import { format } from 'node:util';

const MUSTER = new URL('../../bin/muster', import.meta.url).pathname;
let last = Promise.resolve();
let runs = 0;

process.on('message', (command) => {
  last = last.then(async () => process.send({ number: command.number, ...(await run(command)) }));
});
process.on('disconnect', () => process.exit());

async function run({ args, env, input }) {
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    process[name].removeAllListeners('error'); // of the command before
    process[name].write = (text, onWritten) => {
      written[name] += text;
      onWritten?.();
      return true;
    };
  }
  console.log = (...values) => void process.stdout.write(`${format(...values)}\n`);
  console.error = (...values) => void process.stderr.write(`${format(...values)}\n`);
  Object.defineProperty(process, 'stdin', { value: Readable.from(input ? [input] : []), configurable: true });
  process.env = { ...env };
  process.argv = [process.argv[0], MUSTER, ...args];
  process.exitCode = undefined;
  runs += 1;
  await import(`../../dist/cli/main.js?${runs}`); // evaluated anew; what it imports is not
  return { code: process.exitCode ?? 0, ...written };
}
