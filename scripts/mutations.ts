// Breaks one line after the other that a promise rests on, and sees that a test fails: a suite that still passes then holds less than it
// says. Works in a copy of the checkout. usage: tsx scripts/mutations.ts [number]...
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { copyCheckout } from './checkout-copy.js';
import { MUTATIONS } from './mutations/lines.js';

const copy = copyCheckout('mutations');
const asked = process.argv.slice(2).map(Number);
const survivors: string[] = [];
try {
  for (const [index, { promise, file, line, becomes, tests }] of MUTATIONS.entries()) {
    if (asked.length > 0 && !asked.includes(index + 1)) continue;
    const target = path.join(copy, file);
    const text = readFileSync(target, 'utf8');
    if (text.split(line).length !== 2) throw new Error(`${file} does not have this line just once: ${line}`);
    writeFileSync(
      target,
      text.replace(line, () => becomes),
    );
    const { status } = spawnSync('npx', ['--no-install', 'vitest', 'run', '--bail=1', ...tests], { cwd: copy, stdio: 'ignore' });
    writeFileSync(target, text);
    console.log(`${status === 0 ? 'SURVIVED' : 'caught  '} ${index + 1}. ${promise} (${file})`);
    if (status === 0) survivors.push(promise);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
console.log(`${survivors.length} of the mutations survived`);
process.exitCode = survivors.length === 0 ? 0 : 1;
