// Breaks one line after the other that a promise rests on, and sees that a test fails: a suite that still passes then holds less than it
// says. Works in a copy of the checkout. usage: tsx scripts/mutations.ts [number]...
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { copyCheckout } from './checkout-copy.js';
import { MUTATIONS } from './mutations/lines.js';

const copy = copyCheckout('mutations');
const asked = process.argv.slice(2).map(Number);
const chosen = [...MUTATIONS.entries()].filter(([index]) => asked.length === 0 || asked.includes(index + 1));
const survivors: string[] = [];
try {
  // A test that fails on whole code would catch every mutation, and so prove nothing.
  const all = new Set(chosen.flatMap(([, mutation]) => mutation.tests));
  if (!passes([...all], 'inherit')) throw new Error('the tests fail before anything is broken');
  for (const [index, { promise, file, line, becomes, tests }] of chosen) {
    const target = path.join(copy, file);
    const text = readFileSync(target, 'utf8');
    if (text.split(line).length !== 2) throw new Error(`${file} does not have this line just once: ${line}`);
    writeFileSync(
      target,
      text.replace(line, () => becomes),
    );
    const survived = passes(tests, 'ignore');
    writeFileSync(target, text);
    console.log(`${survived ? 'SURVIVED' : 'caught  '} ${index + 1}. ${promise} (${file})`);
    if (survived) survivors.push(promise);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
console.log(`${survivors.length} of the mutations survived`);
process.exitCode = survivors.length === 0 ? 0 : 1;

function passes(tests: readonly string[], output: 'inherit' | 'ignore'): boolean {
  const { status } = spawnSync('npx', ['--no-install', 'vitest', 'run', '--bail=1', ...tests], {
    cwd: copy,
    // More seeds than in `npm test`: few of them show a single broken line.
    env: { ...process.env, JUDGE_SEEDS: '2000', SIMULATION_SEEDS: '120' },
    stdio: ['ignore', output, output],
  });
  return status === 0;
}
