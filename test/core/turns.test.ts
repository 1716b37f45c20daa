import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.js';
import { BYTES_A_TURN, ITEMS_A_TURN, portionsOf } from '../../src/core/turns.js';
import type { Database } from '../../src/db/connection/database.js';
import { countReceived } from '../../src/db/tables/second-readings.js';
import { pageParameters, type WalkWrite } from '../../src/mirror/page-parameters.js';
import type { PageToWrite } from '../../src/mirror/page-values.js';
import { KeyHashes } from '../../src/pagers/key-hashes.js';
import { pagerFor } from '../../src/pagers/registry.js';
import { redactResponse } from '../../src/privacy/redact.js';
import { privacyOf } from '../../src/privacy/rules.js';
import { ListSuppressions } from '../../src/privacy/suppressions.js';
import { FollowedMemory } from '../../src/unchanged/followed-memory.js';
import { heapOfParsed, readAnswer } from '../../src/verify/read-answer.js';
import { childPage } from '../../src/walks/child-page.js';
import { leaveOut } from '../../src/walks/leave-out.js';
import type { OpenWalk } from '../../src/walks/open-walk.js';
import { PassMemory } from '../../src/walks/pass-memory.js';
import { readInFull } from '../../src/walks/received-page.js';
import { portionsIn, turnsDuring } from '../support/portions.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';

const FEW = ITEMS_A_TURN / 2;
const MANY = 10 * ITEMS_A_TURN;

test.each([
  ['no items', [], [0]],
  ['few', Array.from({ length: FEW }, () => 1), [FEW]],
  ['as many as a turn takes', Array.from({ length: ITEMS_A_TURN }, () => 1), [ITEMS_A_TURN]],
  ['many', Array.from({ length: 2 * ITEMS_A_TURN + 1 }, () => 1), [ITEMS_A_TURN, ITEMS_A_TURN, 1]],
  ['large ones', [BYTES_A_TURN, 1, BYTES_A_TURN, 1], [1, 2, 1]],
])('portions of %s', (_what, sizes, lengths) => {
  const portions = [...portionsOf(sizes, (size) => size)];
  expect(portions.map(({ length }) => length)).toEqual(lengths);
  expect(portions.flat()).toEqual(sizes);
});

// How much a portion holds is counted: what is of usual size is one, and what is larger grows in portions and not within one.
describe('what grows with an answer is done in portions', () => {
  const page = (records: readonly string[]) => Buffer.from(`{"data":[${records.join(',')}]}`);
  const records = (count: number) => page(Array.from({ length: count }, (_, n) => `{"id":${n},"name":"x"}`));
  const megabytes = (count: number) =>
    page(Array.from({ length: 10 * count }, (_, n) => `{"id":${n},"name":"${'x'.repeat(BYTES_A_TURN / 10)}"}`));
  const read = (bytes: Buffer) => portionsIn(readAnswer(bytes, { resource: 'list', dataPath: ['data'] }));
  const treated = (bytes: Buffer) => portionsIn(redactResponse(bytes, ['data'], [], privacyOf({ name: 'mask' }, undefined)!));

  test('a second reading', () => {
    expect(read(records(FEW))).toBe(1);
    expect(read(records(MANY))).toBeGreaterThanOrEqual(10);
    expect(read(megabytes(8))).toBeGreaterThanOrEqual(8);
    expect(portionsIn(heapOfParsed(records(FEW)))).toBe(1);
    expect(portionsIn(heapOfParsed(megabytes(8)))).toBe(9);
  });

  test('what a page is written with', () => {
    const whole = (count: number, sizeOf = 1) => {
      const ids = Array.from({ length: count }, (_, n) => `r${n}`);
      const written = ids.map((id, position) => ({ id, position, source: Buffer.alloc(sizeOf), start: 0, end: sizeOf }));
      return {
        number: 0,
        records: written,
        rejected: [],
        ledger: { kind: 'new', ids, keys: new Uint32Array(2 * count) },
      } as const;
    };
    const parameters = (...pages: readonly PageToWrite[]) => portionsIn(pageParameters({ checkpoint: {} } as WalkWrite, pages));
    expect(parameters(whole(FEW), whole(FEW))).toBe(1);
    // Each of the passes: the records by their ids, their places, copies of their texts, and three arrays.
    expect(parameters(whole(MANY))).toBe(1 + 6 * 9);
    expect(parameters(whole(8, BYTES_A_TURN))).toBe(8);
    // Where few of the records are compared, the ledger's keys are an array of their own.
    expect(parameters({ ...whole(MANY), records: [] })).toBe(1 + 9);
  });

  /** Portions in which the table of a pass grows from so many slots until half of them are enough for the keys. */
  const growths = (slots: number, count: number): number =>
    slots < 2 * count ? Math.floor(slots / ITEMS_A_TURN) + growths(2 * slots, count) : 0;

  test('what a pass remembers of a page', () => {
    const keys = (count: number) => KeyHashes.of(Array.from({ length: count }, (_, n) => `r${n}`));
    const memory = new PassMemory();
    expect([portionsIn(memory.add(keys(FEW))), portionsIn(memory.repeats(keys(FEW)))]).toEqual([1, 1]);
    expect(portionsIn(memory.add(keys(MANY)))).toBe(10 + growths(2_048, MANY));
    expect(portionsIn(memory.repeats(keys(MANY)))).toBe(10);
    expect(memory.size).toBe(MANY);
  });

  test('the pages of a list that a pass has followed, once it follows no more', () => {
    const pages = Array.from({ length: 100 }, (_, n) => KeyHashes.of(Array.from({ length: FEW }, (_key, m) => `${n}/${m}`)));
    const memory = new FollowedMemory(pages, '');
    for (const keys of pages) expect(portionsIn(memory.add(keys))).toBe(1);
    expect(portionsIn(memory.repeats(KeyHashes.of(['other'])))).toBe(100 / 2 + growths(1_024, 100 * FEW));
    expect(memory.size).toBe(100 * FEW);
  });

  test('the keys of a child list', async () => {
    const [endpoint] = endpointsOf({ employees: ENTRIES.employees });
    const format = { resource: 'employees', id: ['id'], pager: pagerFor(endpoint!), ignoreTotals: true };
    const received = await readInFull({ bytes: records(MANY), headers: {}, url: '' }, format, 'id');
    expect(portionsIn(childPage('1', received))).toBe(10);
  });

  test('the keys that a second reading asks for', async () => {
    const steps: Database['steps'] = { queryRaw: async () => ({ columnNames: ['count'], columnTypes: [0], rows: [[0]] }) };
    const turns = (count: number) =>
      turnsDuring(countReceived({ steps }, { walkId: '', pass: 1, ids: Array.from({ length: count }, String) }));
    expect(await turns(FEW)).toBe(0);
    expect(await turns(MANY)).toBeGreaterThanOrEqual(8);
  });

  test('the hashes of keys', () => {
    const keys = (count: number) => portionsIn(KeyHashes.inPortions(Array.from({ length: count }, String)));
    expect([keys(0), keys(FEW), keys(ITEMS_A_TURN), keys(MANY)]).toEqual([1, 1, 1, 10]);
  });

  test('an answer whose values are masked: read, and put together', () => {
    expect(treated(records(FEW))).toBe(1);
    // Each portion of records that is read has as many values to replace.
    expect(treated(records(MANY))).toBe(1 + 10 + 10);
  });

  test('the search for records of people who were forgotten', async () => {
    const [endpoint] = endpointsOf({ employees: ENTRIES.employees });
    const format = { resource: 'employees', id: ['id'], pager: pagerFor(endpoint!), ignoreTotals: true };
    const list = { environment: 'test', companyId: 'c', resource: 'employees' } as const;
    const suppressions = new ListSuppressions(list, new Secret(Buffer.alloc(32).toString('base64')), []);
    const walk = { list, epoch: 1n, suppressions, idField: 'id' } as unknown as OpenWalk;
    const turns = async (count: number) => {
      const received = await readInFull({ bytes: records(count), headers: {}, url: '' }, format, 'id');
      return turnsDuring(leaveOut({} as Database, walk, endpoint!, undefined, received));
    };
    expect(await turns(FEW)).toBe(0);
    // Ten portions; the end of the first may come before others wait for it.
    expect(await turns(MANY)).toBeGreaterThanOrEqual(8);
  });
});
