import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadServerConfig } from '../../src/config/config.js';
import { startMuster } from '../support/process.js';

const KEY = Buffer.alloc(32, 7).toString('base64');
let folder: string;
let hashing: string;
let masking: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'muster-'));
  const write = (kind: string) => {
    const people = { method: 'GET', path: '/c/{company_id}/p', pager: { style: 'odata', size: 5 }, privacy: { email: kind } };
    const file = path.join(folder, `${kind}.json`);
    writeFileSync(file, JSON.stringify({ people }));
    return file;
  };
  [hashing, masking] = [write('hash'), write('mask')];
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('MUSTER_PRIVACY_KEY', () => {
  test('is needed as soon as the catalogue has a rule "hash", beside whatever else is wrong', () => {
    expect(() => loadServerConfig({ MUSTER_CATALOGUE: hashing, PORT: 'x' })).toThrow(
      /2 settings are wrong or missing\.\n {2}PORT: .*\n {2}MUSTER_PRIVACY_KEY: is missing; the list people .*for example: \S+=\)$/s,
    );
    expect(() => loadServerConfig({ MUSTER_CATALOGUE: masking })).not.toThrow();
    const config = loadServerConfig({ MUSTER_CATALOGUE: hashing, MUSTER_PRIVACY_KEY: KEY });
    expect(config.privacyKey?.reveal()).toBe(KEY);
    expect(JSON.stringify(config)).not.toContain(KEY);
  });

  test('may come from a file', () => {
    const file = path.join(folder, 'key');
    writeFileSync(file, `${KEY}\n`);
    expect(loadServerConfig({ MUSTER_CATALOGUE: hashing, MUSTER_PRIVACY_KEY_FILE: file }).privacyKey?.reveal()).toBe(KEY);
  });

  test.each(['short', 'c2hvcnQ=', `${KEY}!`, Buffer.alloc(33).toString('base64')])('is 32 bytes in base64, and not %j', (key) => {
    const load = () => loadServerConfig({ MUSTER_CATALOGUE: hashing, MUSTER_PRIVACY_KEY: key });
    expect(load).toThrow(/1 setting is wrong.*MUSTER_PRIVACY_KEY: must be 32 bytes in base64/s);
    expect(load).not.toThrow(key);
  });

  test('stops the start with exit code 2 where it is missing', async () => {
    const up = startMuster(['up'], { MUSTER_HOME: folder, MUSTER_CATALOGUE: hashing });
    expect(await up.exit).toEqual({ code: 2, signal: null });
    expect(up.stderr).toContain('MUSTER_PRIVACY_KEY: is missing');
  });
});
