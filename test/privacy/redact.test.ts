import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.js';
import { atOnce } from '../../src/core/turns.js';
import { scanJson } from '../../src/pagers/json-scanner.js';
import { PrivacyKey } from '../../src/privacy/privacy-key.js';
import { redact, redactResponse } from '../../src/privacy/redact.js';
import { type PrivacyRules, privacyOf } from '../../src/privacy/rules.js';
import { NAMES, type Redacted, RULES, textOf, WRITTEN } from './json-texts.js';

const KEY = Buffer.alloc(32, 7);
const key = new PrivacyKey(new Secret(KEY.toString('base64')));
const hmac = (text: string) => createHmac('sha256', KEY).update(text).digest('hex');
const treated = (text: string, rules: PrivacyRules, path: readonly string[] = []) =>
  atOnce(redact(Buffer.from(text), path, privacyOf(rules, key)!)).toString();

/** What the documentation says of each kind, by JSON.parse. */
const BY = {
  mask(scalar: string) {
    const value = JSON.parse(scalar) as unknown;
    if (typeof value === 'string') return JSON.stringify('*'.repeat([...value].length));
    if (typeof value === 'number') return scalar.replaceAll(/[^.]/g, '9');
    return value === null ? 'null' : 'false';
  },
  hash(scalar: string) {
    const value = JSON.parse(scalar) as unknown;
    if (value === null) return 'null';
    return JSON.stringify(hmac(typeof value === 'string' ? value : scalar));
  },
};

function naively(rules: PrivacyRules): Redacted {
  return (path) => {
    const kind = Object.hasOwn(rules, path) ? rules[path] : undefined;
    return kind === undefined || kind === 'drop' ? kind : BY[kind];
  };
}

describe('redact', () => {
  test('does to any JSON what the naive reading says, and leaves every other byte as it was', () => {
    fc.assert(
      fc.property(fc.array(WRITTEN, { maxLength: 4 }), RULES, (records, rules) => {
        const written = records.map((record) => textOf(record));
        const expected = records.map((record) => textOf(record, naively(rules)));
        const page = (texts: readonly string[]) => `{"total": 1.0, "value" : {"data":[${texts.join(' , ')}]}, "a":"A"}\n`;
        expect(treated(page(written), rules, ['value', 'data'])).toBe(page(expected));
      }),
      { numRuns: 2_000 },
    );
  });

  test('says where records and members stand in what it has made, as whoever reads that alone does', () => {
    fc.assert(
      fc.property(fc.array(WRITTEN, { maxLength: 4 }), RULES, (records, rules) => {
        const privacy = privacyOf(rules, key)!;
        const free = NAMES.filter((name) => !Object.keys(rules).some((path) => `${path}.`.startsWith(`${name}.`)));
        const page = Buffer.from(`{"total":1e9999,"data":[${records.map((record) => textOf(record)).join(' , ')}], "data2":[]}`);
        const { bytes, scanned } = atOnce(redactResponse(page, ['data'], free, privacy));
        const alone = atOnce(scanJson(bytes, ['data'], free))!;
        expect(scanned!.array).toEqual(alone.array);
        // What was treated may have been what could not be kept.
        if (alone.isSuspicious) expect(scanned!.isSuspicious).toBe(true);
      }),
      { numRuns: 2_000 },
    );
    const marked = atOnce(
      redactResponse(Buffer.from('\u{feff}[{"a":1,"id":2}]'), [], ['id'], privacyOf({ a: 'drop' }, undefined)!),
    );
    expect(marked.scanned).toEqual(atOnce(scanJson(marked.bytes, [], ['id'])));
  });

  test('keeps kind and length of what it masks, and says nothing else of it', () => {
    const record = '{"t":"Ånn 😀","n":-1250.50,"e":1e5,"b":true,"f":false,"z":null,"o":{"k":["x",{"y":2}]}}';
    const rules = { t: 'mask', n: 'mask', e: 'mask', b: 'mask', f: 'mask', z: 'mask', o: 'mask' } as const;
    expect(treated(`[${record}]`, rules)).toBe(
      '[{"t":"*****","n":99999.99,"e":999,"b":false,"f":false,"z":null,"o":{"k":["*",{"y":9}]}}]',
    );
  });

  test('hashes the text itself, however it was written', () => {
    const written = ['"ann@example.com"', '"ann\\u0040example.com"', '"\\u0061nn@example.com"'];
    const hashed = written.map((text) => treated(`[{"email":${text}}]`, { email: 'hash' }));
    expect(new Set(hashed)).toEqual(new Set([`[{"email":"${hmac('ann@example.com')}"}]`]));
    expect(treated('[{"n":[1.0,1,true,null]}]', { n: 'hash' })).toBe(
      `[{"n":["${hmac('1.0')}","${hmac('1')}","${hmac('true')}",null]}]`,
    );
  });

  test('hashes by HMAC-SHA-256 whatever the length, a short value behind a long one', () => {
    for (const length of [0, 1, 55, 56, 64, 65, 2_000_000, 3, 1_023, 1_024, 1_025, 1_024, 7]) {
      const value = 'æ'.repeat(length >> 1) + 'x'.repeat(length & 1);
      expect(key.hash(value)).toBe(hmac(value));
      expect(key.hash(Buffer.from(value))).toBe(hmac(value));
    }
  });

  test('leads through arrays at any depth, the records included, and takes a dot for one in a name as well', () => {
    expect(treated('[[{"a":[[{"b":1,"c":2}]]}],{"a.b":1,"a":{"c":2}}]', { 'a.b': 'drop' })).toBe(
      '[[{"a":[[{"c":2}]]}],{"a":{"c":2}}]',
    );
  });

  test('lets no second member slip through, in the record or on the way to it', () => {
    const page = '{"data":[{"a":1,"\\u0061":2}],"\\u0064ata":[{"b":0,"a":"3"}]}';
    expect(treated(page, { a: 'drop' }, ['data'])).toBe('{"data":[{}],"\\u0064ata":[{"b":0}]}');
  });

  test('reads on behind a byte order mark', () => {
    expect(treated('\u{feff}[{"a":1}]', { a: 'drop' })).toBe('[{}]');
  });

  test.each(['', '[{"a":1}', '[{"a":1}] x', '[{"a":01}]', `${'['.repeat(2_000)}${']'.repeat(2_000)}`])(
    'gives back what is no JSON: %#',
    (text) => {
      const bytes = Buffer.from(text);
      expect(atOnce(redact(bytes, [], privacyOf({ a: 'drop' }, undefined)!))).toBe(bytes);
    },
  );

  test('gives the very buffer back where nothing is to be done, and says what it has found', () => {
    const bytes = Buffer.from('[{"b":{"x":null}}]');
    expect(atOnce(redact(bytes, [], privacyOf({ a: 'drop', 'b.c': 'mask' }, undefined)!))).toBe(bytes);
    expect([...atOnce(redactResponse(bytes, [], [], privacyOf({ a: 'drop', 'b.x': 'mask' }, undefined)!)).matched]).toEqual([
      'b.x',
    ]);
  });

  test('hashes of 10,000 addresses cannot be found without the key', () => {
    const addresses = Array.from({ length: 10_000 }, (_, n) => `person.${n}@example.com`);
    const records = addresses.map((email) => JSON.stringify({ email })).join(',');
    const hashes = new Set(treated(`[${records}]`, { email: 'hash' }).match(/[0-9a-f]{64}/g));
    expect(hashes.size).toBe(10_000);
    const guesses = ['sha256', 'sha512', 'md5'].flatMap((algorithm) => [
      (text: string) => createHash(algorithm).update(text).digest('hex'),
      (text: string) => createHmac(algorithm, '').update(text).digest('hex'),
      (text: string) => createHmac(algorithm, key.id).update(text).digest('hex'),
      (text: string) => createHmac(algorithm, Buffer.alloc(32)).update(text).digest('hex'),
    ]);
    for (const guess of guesses) expect(addresses.filter((address) => hashes.has(guess(address)))).toEqual([]);
  });
});
