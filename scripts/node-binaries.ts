import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const TESTS = fileURLToPath(new URL('../test', import.meta.url));

/** The program of a Node (`20-18`, `22`, `24`) that `npm ci` in test/nodes or test/node-24 has brought for this machine. Throws where it is missing. */
export function nodeBinary(name: string): string {
  const folder = `node${name}-${process.platform}-${process.arch}`;
  const found = path.join(TESTS, name === '24' ? 'node-24' : 'nodes', 'node_modules', folder, 'bin/node');
  if (existsSync(found)) return found;
  throw new Error(`${found} is missing: npm has no Node ${name} for this machine, or \`npm ci\` did not run there`);
}

/** The value of PATH with which whatever is started finds this Node first. */
export function pathWith(node: string): string {
  return `${path.dirname(node)}${path.delimiter}${process.env['PATH']}`;
}
