import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { HOME, runMuster } from '../run-muster.js';

const NOBODY = 'http://127.0.0.1:1';
const GUID = '5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10';

describe('help', () => {
  test('lists the commands and the exit codes', async () => {
    const { code, stdout, stderr } = await runMuster(['--help']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/Exit codes: 0 ok, 1 failed, 2 bad usage or configuration/);
    const commands = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)].map(([, command]) => command);
    expect(commands).toEqual(
      expect.arrayContaining([
        'up',
        'api',
        'worker',
        'migrate',
        'sandbox',
        'onboard',
        'companies',
        'sync',
        'runs',
        'status',
        'pause',
        'resume',
        'remove',
        'holds',
        'changes',
      ]),
    );
  });

  test.concurrent.each([
    ['up'],
    ['worker'],
    ['migrate'],
    ['sandbox'],
    ['sandbox', 'break'],
    ['onboard'],
    ['sync'],
    ['runs'],
    ['runs', 'show'],
    ['changes'],
  ])('is there for %s %s', async (...command) => {
    const words = command.filter((word): word is string => typeof word === 'string');
    const { code, stdout } = await runMuster([...words, '--help']);
    expect([code, stdout]).toEqual([0, expect.stringContaining(`Usage: muster ${words.join(' ')}`)]);
  });
});

test.concurrent.each(['remove', 'rekey'])('%s says in its help when it asks', async (command) => {
  const { stdout } = await runMuster([command, '--help']);
  expect(stdout).toMatch(/--yes +do not ask/);
  expect(stdout).toContain('On a terminal the command asks first; without one, as in a script, it does not.');
});

describe('bad usage exits with 2 and says what is wrong', () => {
  test.concurrent.each<[string[], RegExp]>([
    [[], /Usage: muster/],
    [['nonsense'], /unknown command 'nonsense'/],
    [['nonsense', '--help'], /unknown command 'nonsense'/],
    [['--help', 'nonsense'], /unknown command 'nonsense'/],
    [['help', 'nonsense'], /unknown command 'nonsense'/],
    [['companies', '--nonsense'], /unknown option '--nonsense'/],
    [['companies', 'extra'], /too many arguments/],
    [['companies', '--environment', 'staging'], /Allowed choices are production, test/],
    [['companies', '--company', '\u0007'], /must be a name or a company_id/],
    [['verify'], /Name the company/],
    [['onboard', '--environment', 'test'], /required option '--company/],
    [['onboard', '--environment', 'test', '--company', 'acme'], /must be a GUID/],
    [['onboard', '--environment', 'test', '--company', GUID], /No refresh token was given/],
    [['onboard', '--environment', 'test', '--company', GUID, '--refresh-token-file', '/nowhere'], /\/nowhere cannot be read/],
    [['onboard', '--environment', 'test', '--company', GUID, '--refresh-token-file', '/dev/null'], /\/dev\/null is empty/],
    [['runs', 'show'], /missing required argument 'id'/],
    [['sync', '--wait'], /name it with --environment and --company/],
    [['changes', '--after', '-x'], /must be a seq/],
    [['status', '--url', 'nonsense'], /must be an address/],
    [['sandbox', '--port', '99999'], /from 0 to 65535/],
    [['sandbox', 'break', 'lie', '--for', '0s'], /a time like 45s, 5m or 1h/],
  ])('%s', async (args, message) => {
    const { code, stdout, stderr } = await runMuster(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});

describe('up with a database and no provider', () => {
  const env = {
    DATABASE_URL: 'postgres://muster@127.0.0.1:1/muster',
    MUSTER_ENCRYPTION_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
  };

  test('says what to set, and mirrors no made-up companies', async () => {
    const { code, stdout, stderr } = await runMuster(['up'], env);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      /\[invalid_configuration\]\n {2}PRODUCTION_BASE_URL: is missing, .*TEST_.*DATABASE_URL.*`muster up --sandbox` \(for example: https:/,
    );
  });

  test('goes on with --sandbox', async () => {
    const { code, stderr } = await runMuster(['up', '--sandbox', '--json'], { ...env, PORT: '0' });
    expect([code, stderr]).toEqual([1, expect.stringContaining('[database_unavailable]')]);
  });

  test('takes no --sandbox beside a provider', async () => {
    const provider = {
      TEST_BASE_URL: 'https://a.example',
      TEST_AUTH_URL: 'https://a.example',
      TEST_CLIENT_ID: 'a',
      TEST_CLIENT_SECRET: 'b',
    };
    const { code, stderr } = await runMuster(['up', '--sandbox'], {
      ...env,
      ...provider,
      PUBLIC_URL: 'https://muster.example.com',
    });
    expect([code, stderr]).toEqual([2, expect.stringContaining('--sandbox starts no sandbox')]);
  });
});

describe('bad configuration exits with 2 and one message that lists every fault', () => {
  test.concurrent.each(['up', 'api', 'migrate', 'companies'])('%s', async (command) => {
    const { code, stdout, stderr } = await runMuster([command], {
      DATABASE_URL: 'mysql://x',
      PORT: 'canary',
      SYNC_CRON: 'nightly',
    });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^muster: .* \[invalid_configuration\]\n {2}/);
    for (const name of ['DATABASE_URL', 'MUSTER_ENCRYPTION_KEYS', 'PORT', 'SYNC_CRON']) expect(stderr).toContain(`${name}:`);
    expect(stderr).not.toMatch(/canary|\n\s+at /);
  });
});

describe('when nothing listens', () => {
  test.concurrent.each<[string, string[], Record<string, string>]>([
    ['with a token', ['companies', '--url', NOBODY], { MUSTER_ADMIN_TOKEN: 'a-token-of-nobody' }],
    ['without one', ['companies', '--url', NOBODY], {}],
    ['at PUBLIC_URL', ['status'], { PUBLIC_URL: NOBODY, PORT: '2' }],
  ])('says how to start it and exits with 1, %s', async (_what, args, env) => {
    const { code, stdout, stderr } = await runMuster(args, { MUSTER_HOME: path.join(HOME, 'empty'), ...env });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      `muster: muster is not running at ${NOBODY}: start it with \`npm start\`, or name its address with --url.\n`,
    );
  });
});

describe('when the address cannot be reached', () => {
  test('says why: DNS', async () => {
    const { code, stderr } = await runMuster(['status', '--url', 'http://nobody.invalid']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^muster: http:\S+ cannot be reached: .*(no host of that name|could not be looked up)/),
    ]);
  });

  test('says why: TLS', async () => {
    const plain = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void plain.close());
    await once(plain, 'listening');
    const url = `https://127.0.0.1:${(plain.address() as AddressInfo).port}`;
    const { code, stderr } = await runMuster(['status', '--url', url]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^muster: https:\S+ cannot be reached: [^\n]+\n$/)]);
    expect(stderr).not.toContain('npm start');
  });
});

describe('when something else answers', () => {
  test.each<[string, number, string]>([
    ['status', 200, '<!doctype html>'],
    ['status', 200, '{"files":[]}'],
    ['status', 404, ''],
    ['companies', 200, '<!doctype html>'],
    ['companies', 404, ''],
  ])('says so and exits with 1: %s, %d %s', async (command, status, answer) => {
    const stranger = createServer((_request, response) => response.writeHead(status).end(answer)).listen(0, '127.0.0.1');
    onTestFinished(() => void stranger.close());
    await once(stranger, 'listening');
    const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
    const { code, stdout, stderr } = await runMuster([command, '--url', url], { MUSTER_ADMIN_TOKEN: 'a-token-of-nobody' });
    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      `muster: ${url} answered ${status}, which is not how Muster answers: give the address of its admin API with --url, such as http://127.0.0.1:8080.\n`,
    ]);
  });
});
