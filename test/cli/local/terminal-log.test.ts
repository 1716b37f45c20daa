import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { emptyDatabase } from '../../support/database.js';
import { HOME, onTerminal, runMuster } from '../run-muster.js';

const MUSTER = fileURLToPath(new URL('../../../bin/muster', import.meta.url));
const built = (file: string) => new URL(`../../../dist/observability/${file}`, import.meta.url).href;

const CANARY = 'q7Zr!canary+4b/9x$WmK';
const PLAIN = 'unregistered-opaque';
const LINES = 200;

/** Logs canaries wherever one can stand, then much, and ends at once. */
const PROGRAM = `
import { createLogger } from ${JSON.stringify(built('logger.js'))};
import { registerSecret } from ${JSON.stringify(built('secret-registry.js'))};
const canary = ${JSON.stringify(CANARY)};
registerSecret(canary);
const log = createLogger({ level: 'info', format: process.env.FORMAT });
log.info('in the message ' + canary);
log.info({ note: canary, a: { b: [{ c: canary }] }, [canary]: 1 }, 'in members');
log.info({ refresh_token: '${PLAIN}', url: 'https://x.test/?code=${PLAIN}', header: 'Bearer ${PLAIN}' }, 'by name and shape');
log.child({ note: canary }).info('in a child');
log.error({ err: new Error('outer ' + canary, { cause: new Error('inner ' + canary) }) }, 'in an error');
log.info('an order to the terminal: \\u001b[2J\\u001b]0;title\\u0007\\u009b2J and its end');
for (let n = 1; n <= ${LINES}; n++) log.info({ n }, 'line ' + n + ' of many');
process.exit(0);
`;
const file = join(HOME, 'logs.mjs');
writeFileSync(file, PROGRAM);
const command = `${process.execPath} ${file}`;

test('on a terminal lines are for people, every one is there, and no canary shows', async () => {
  const shown = await onTerminal(command);
  expect(shown).not.toContain('"level"');
  expect(shown).toContain('\u001b[32mINFO\u001b[39m');
  expect(shown.match(/line \d+ of many/g)).toHaveLength(LINES);
  expect(shown).not.toMatch(/canary|opaque/);
  expect(shown.match(/\[redacted\]/g)!.length).toBeGreaterThan(8);
  for (const place of ['in the message', 'in members', 'in a child', 'in an error', 'inner']) expect(shown).toContain(place);
});

test('what a text holds cannot order the terminal about', async () => {
  const shown = await onTerminal(command);
  const line = /an order to the terminal.*/.exec(shown)![0];
  // oxlint-disable-next-line no-control-regex
  expect(line.replaceAll(/\u001b\[\d+m/g, '').trim()).toBe(
    'an order to the terminal: \ufffd[2J\ufffd]0;title\ufffd\ufffd2J and its end',
  );
});

test.each([
  ['on a terminal, where JSON is asked for', () => onTerminal(command, { FORMAT: 'json' })],
  ['where there is no terminal', async () => (await promisify(execFile)(process.execPath, [file])).stderr],
])('%s, lines are JSON, and no canary shows', async (_where, show) => {
  const lines = (await show()).trim().split(/\r?\n/);
  expect(lines.map((line) => JSON.parse(line) as object)).toHaveLength(LINES + 6);
  expect(lines.join()).not.toMatch(/canary|opaque/);
});

test('LOG_FORMAT decides in the commands that log', async () => {
  const log = async (env: Record<string, string>) => {
    const database = await emptyDatabase();
    const settings = {
      DATABASE_URL: database.url,
      MUSTER_ENCRYPTION_KEYS: `k:${'A'.repeat(43)}=`,
      REDIS_URL: 'redis://127.0.0.1:1',
      ...env,
    };
    const shown = await onTerminal(`${process.execPath} ${MUSTER} migrate`, settings);
    await database.close();
    return shown;
  };
  expect(await log({})).toMatch(/INFO.*: .*migration applied/);
  expect(await log({ LOG_FORMAT: 'json' })).toMatch(/^\{"level":30,.*"msg":"migration applied"\}/m);
  expect(await runMuster(['migrate'], { LOG_FORMAT: 'xml' })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('LOG_FORMAT: must be one of auto, json, pretty') as string,
  });
});
