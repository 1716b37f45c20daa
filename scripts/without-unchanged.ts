// Shows that walks are right whatever need not be compared: in a copy of the checkout, the null implementation stands in the place of
// src/unchanged, and the tests of walks, runs and mirror, and the campaigns, pass as they do with it.
// usage: tsx scripts/without-unchanged.ts [folder of tests, or a campaign]...
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const TESTS = ['test/walks', 'test/runs', 'test/mirror'];
/** The others are about tokens. */
const CAMPAIGNS = ['walk-kill', 'operator-actions', 'twins', 'test/walks/simulation'];
const STAND_IN = `export { compareEverything as skipUnchanged } from '../walks/comparison.js';\n`;

const checkout = fileURLToPath(new URL('..', import.meta.url));
const copy = mkdtempSync(path.join(tmpdir(), 'muster-without-unchanged-'));
try {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: checkout,
    encoding: 'utf8',
  });
  for (const file of [...listed.trim().split('\n'), 'src/generated'])
    cpSync(path.join(checkout, file), path.join(copy, file), { recursive: true, force: true });
  for (const folder of ['src/unchanged', 'test/unchanged']) rmSync(path.join(copy, folder), { recursive: true });
  mkdirSync(path.join(copy, 'src/unchanged'));
  writeFileSync(path.join(copy, 'src/unchanged/skip-unchanged.ts'), STAND_IN);
  symlinkSync(path.join(checkout, 'node_modules'), path.join(copy, 'node_modules'));
  const asked = process.argv.slice(2);
  run('tsc', '-p', 'tsconfig.build.json');
  run('vitest', 'run', ...(asked.length > 0 ? asked : TESTS));
  if (asked.length === 0) run('vitest', 'run', '--config', 'vitest.campaign.config.ts', ...CAMPAIGNS);
} finally {
  rmSync(copy, { recursive: true, force: true });
}

function run(command: string, ...args: string[]): void {
  console.log(`\n# without src/unchanged: ${[command, ...args].join(' ')}`);
  const { status } = spawnSync('npx', ['--no-install', command, ...args], { cwd: copy, stdio: 'inherit' });
  if (status === 0) return;
  process.exitCode = 1;
  throw new Error(`${command} failed without src/unchanged`);
}
