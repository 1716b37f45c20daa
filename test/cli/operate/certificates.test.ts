import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { makeUnsigned, signAll, someSigner } from '../../certificates/certificate-fixture.js';
import { companyIdOf } from '../../support/company-ids.js';
import { HOME, runMuster } from '../run-muster.js';

let admin: AdminFixture;
const file = (name: string) => join(HOME, name);
/** A command that asks the API. */
const asked = (...args: string[]) => runMuster([...args, '--url', admin.url], { MUSTER_ADMIN_TOKEN: TOKEN });
/** Without anything of it: no address, no token, no settings. */
const check = (...args: string[]) => runMuster(['certificate', 'check', ...args]);

beforeAll(async () => {
  admin = await startAdmin();
  await makeUnsigned(admin.db, { companies: 2, nights: 3 });
  await signAll(admin.db, await someSigner());
});
afterAll(() => admin.stop());

test('certificates are listed newest first, and written to a file the oldest first, with the keys beside it', async () => {
  const listed = await asked('certificates', '--company', companyIdOf(1), '--resource', 'employees', '--json');
  expect(listed.json().map(({ feed }) => feed.through)).toEqual([300, 200, 100]);
  const table = await asked('certificates', '--limit', '2');
  expect(table.stdout.split('\n').filter(Boolean)).toHaveLength(3);
  expect((await asked('certificates', '--output', file('all.jws'))).code).toBe(0);
  const lines = readFileSync(file('all.jws'), 'utf8').trimEnd().split('\n');
  expect(lines).toHaveLength(12);
  expect(lines).toEqual(
    (await asked('certificates', '--json'))
      .json()
      .map(({ jws }) => jws)
      .toReversed(),
  );

  const right = await check(file('all.jws'));
  expect(right.stdout).toMatch(/^CERTIFICATE .* RECEIVED +ROWS +KEPT BY A HOLD +KEY$/m);
  expect(right.stdout).toMatch(/all\.jws, line 1 .* 5 +9 +4 +\S+$/m);
  expect([right.code, right.stderr]).toEqual([0, 'All 12 certificates hold.\n']);
  expect((await check(file('all.jws'), '--keys', `${admin.url}/.well-known/jwks.json`, '--json')).json()).toHaveLength(12);
});

test('a chain that begins in its middle holds, and it is said which does', async () => {
  const lines = readFileSync(file('all.jws'), 'utf8').trimEnd().split('\n');
  writeFileSync(file('later.jws'), `${lines.slice(4).join('\n')}\n`);
  const { code, stderr } = await check(file('later.jws'), '--keys', file('all.jws.jwks.json'));
  expect(code).toBe(0);
  expect(stderr.match(/later\.jws, line [1-4]: the chain of \S+ \S+ \S+ begins in its middle here/g)).toHaveLength(4);
  expect(stderr).toContain('All 8 certificates hold.');
});

test('where nothing is certified yet, no file is made', async () => {
  const { code, stderr } = await asked(
    'certificates',
    '--company',
    '5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10',
    '--output',
    file('none.jws'),
  );
  expect([code, existsSync(file('none.jws'))]).toEqual([1, false]);
  expect(stderr).toContain('no such certificate yet');
});

test('the check fails where something does not hold, and says what and where', async () => {
  await asked('certificates', '--company', companyIdOf(1), '--resource', 'employees', '--output', file('list.jws'));
  const [one, two, three] = readFileSync(file('list.jws'), 'utf8').split('\n');
  const keys = ['--keys', file('list.jws.jwks.json')];
  for (const [text, said] of [
    [
      `${one}\n${two!.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A'))}\n`,
      /bad\.jws, line 2: (is no certificate|does not hold)/,
    ],
    [`${one}\n${three}\n`, /bad\.jws, line 2: does not follow .*line 1: one between them is missing/],
    [`${one}\r\n`, /bad\.jws: is no certificate/],
    ['', /bad\.jws: is no certificate/],
  ] as const) {
    writeFileSync(file('bad.jws'), text);
    const { code, stderr } = await check(file('bad.jws'), ...keys);
    expect([code, stderr]).toEqual([1, expect.stringMatching(said)]);
  }
  const stranger = { keys: [(await someSigner()).publicKey] };
  writeFileSync(file('stranger.json'), JSON.stringify(stranger));
  const foreign = await check(file('list.jws'), '--keys', file('stranger.json'));
  expect([foreign.code, foreign.stderr]).toEqual([1, expect.stringContaining('is not among the keys given')]);
});

test('files and keys that cannot be read are bad usage, with what to do', async () => {
  writeFileSync(file('alone.jws'), 'a.b.c\n');
  writeFileSync(file('no-keys.json'), '[]');
  for (const [args, said] of [
    [[file('nowhere.jws')], 'cannot be read (ENOENT)'],
    [[file('alone.jws')], 'Give the public keys with --keys.'],
    [[file('alone.jws'), '--keys', file('no-keys.json')], 'is no JWK set'],
  ] as const) {
    const { code, stderr } = await check(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(said)]);
  }
  expect((await check(file('alone.jws'), '--keys', `${admin.url}/nowhere`)).code).toBe(1);
});
