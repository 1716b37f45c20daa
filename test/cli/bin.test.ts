import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const BIN = fileURLToPath(new URL('../../bin/muster', import.meta.url));

/** A folder with bin/muster and the given files of dist/. */
function checkoutWith(files: Readonly<Record<string, string>>): string {
  const home = mkdtempSync(path.join(realpathSync(tmpdir()), 'muster-bin-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  writeFileSync(path.join(home, 'package.json'), '{"type":"module"}');
  cpSync(BIN, path.join(home, 'bin/muster'), { recursive: true });
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(home, 'dist', file)), { recursive: true });
    writeFileSync(path.join(home, 'dist', file), text);
  }
  return home;
}

function start(home: string): { readonly status: number | null; readonly stderr: string } {
  return spawnSync(process.execPath, [path.join(home, 'bin/muster')], { encoding: 'utf8' });
}

const CLIENT = { 'generated/prisma/client.js': '' };

test.each([
  ['nothing is compiled', {}],
  ['the database client is missing', { 'cli/main.js': '' }],
])('where %s, one line says which command compiles', (_, files) => {
  const home = checkoutWith(files);
  expect(start(home)).toMatchObject({
    status: 1,
    stderr: `muster is not compiled. Run \`npm run prepare\` in ${home}/, after \`npm ci\`.\n`,
  });
});

test('where packages are missing, one line names one and the command that installs them', () => {
  const home = checkoutWith({ ...CLIENT, 'cli/main.js': "import 'commander';" });
  expect(start(home)).toMatchObject({
    status: 1,
    stderr: `muster is not installed whole: commander is missing. Run \`npm ci\` in ${home}/.\n`,
  });
});

test('a fault of the program itself keeps its trace', () => {
  const { status, stderr } = start(checkoutWith({ ...CLIENT, 'cli/main.js': "throw new Error('a fault')" }));
  expect(status).toBe(1);
  expect(stderr).toMatch(/Error: a fault\n\s+at .*main\.js/);
});
