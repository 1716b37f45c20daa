// Shows that walks are right whatever need not be compared: in a copy of the checkout, the null implementation stands in the place of
// src/unchanged, and the tests of walks, runs and mirror, and the campaigns, pass as they do with it.
// usage: tsx scripts/without-unchanged.ts [folder of tests, or a campaign]...
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { copyCheckout } from './checkout-copy.js';
import { reportArguments } from './report-arguments.js';

const TESTS = ['test/walks', 'test/runs', 'test/mirror'];
/** The others are about tokens. */
const CAMPAIGNS = ['walk-kill', 'operator-actions', 'twins', 'test/walks/simulation'];
const STAND_IN = `export { compareEverything as skipUnchanged } from '../walks/comparison.js';\n`;

const copy = copyCheckout('without-unchanged');
try {
  for (const folder of ['src/unchanged', 'test/unchanged']) rmSync(path.join(copy, folder), { recursive: true });
  mkdirSync(path.join(copy, 'src/unchanged'));
  writeFileSync(path.join(copy, 'src/unchanged/skip-unchanged.ts'), STAND_IN);
  const asked = process.argv.slice(2);
  run('npm', 'run', '--silent', 'build');
  const vitest = ['--no-install', 'vitest', 'run'];
  run('npx', ...vitest, ...(asked.length > 0 ? asked : [...TESTS, ...reportArguments('without unchanged')]));
  if (asked.length === 0)
    run(
      'npx',
      ...vitest,
      '--config',
      'vitest.campaign.config.ts',
      ...CAMPAIGNS,
      ...reportArguments('campaigns without unchanged'),
    );
} finally {
  rmSync(copy, { recursive: true, force: true });
}

function run(command: string, ...args: string[]): void {
  console.log(`\n# without src/unchanged: ${[command, ...args].join(' ')}`);
  // That a worker may be killed anywhere, the campaigns show with everything else in its place: here a kill at each step is enough.
  const env = { CAMPAIGN_KILLS: '1', ...process.env };
  const { status } = spawnSync(command, args, { cwd: copy, stdio: 'inherit', env });
  if (status === 0) return;
  process.exitCode = 1;
  throw new Error(`${command} ${args.join(' ')} failed without src/unchanged`);
}
