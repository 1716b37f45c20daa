// Generates the database client and compiles src/ to dist/ where npm has installed a checkout. npm runs it after `npm ci` and before
// `npm pack`, and not where the packed package is installed: that one is compiled. Plain JavaScript, since nothing is compiled yet.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('..', import.meta.url));
const isThere = (file) => existsSync(path.join(checkout, file));
const isInstalled = (name) => isThere(`node_modules/${name}/package.json`);

if (isInstalled('prisma') && isThere('node_modules/.bin/tsc')) {
  npmRun('generate');
  // `--omit=dev` leaves the declarations out that a check of types needs. A compiler and `prisma` come even then, as peers of the client.
  const canCheckTypes = ['@types/node', '@types/pg', '@types/pg-copy-streams'].every(isInstalled);
  npmRun('build', canCheckTypes ? '' : '--noCheck --types null');
} else if (isThere('dist/cli/main.js')) {
  console.log('muster: nothing is compiled, because no compiler is installed. dist/ stays as it is.');
} else {
  console.error(
    'muster: there is nothing to run yet, and no compiler is installed. Run `npm ci`; afterwards `npm prune --omit=dev` removes what only a build needs.\n' +
      'Or install the package that `npm pack` makes, which is compiled: docs/installing.md.',
  );
  process.exitCode = 1;
}

/** @param {string} script @param {string} [flags] for the compiler */
function npmRun(script, flags = '') {
  const env = { ...process.env, TSC_FLAGS: flags };
  const { status, error } = spawnSync('npm', ['run', '--silent', script], { cwd: checkout, env, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}
