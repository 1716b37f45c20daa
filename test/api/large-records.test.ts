import { afterAll, beforeAll, expect, test } from 'vitest';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { onboard, openWalk, records, verifiedWalk, type Written, write } from '../mirror/mirror-fixture.js';
import { type AdminFixture, startAdmin } from './admin-fixture.js';

// Records of which few fill a page: readers get them all, a page of some megabytes after the other.

const MB = 1024 * 1024;
const MOST = 8 * MB;
let admin: AdminFixture;
let first: Written;
let second: Written;
/** Large records between small ones, in two versions: as whole pages are fed, and as single changes are. */
const version = (n: number, letter: string) => `{"id":"x${String(n).padStart(2, '0')}","text":"${letter.repeat(3 * MB)}"}`;
const ids = Array.from({ length: 4 }, (_, n) => `x${String(n).padStart(2, '0')}`);

beforeAll(async () => {
  admin = await startAdmin();
  const company = await onboard(admin.db);
  const large = (letter: string) => ids.map((_, n) => version(n, letter));
  first = await verifiedWalk(admin.db, company, [...records(30), ...large('a')]);
  second = await openWalk(admin.db, company);
  await write(admin.db, second, [...records(30), ...large('b')]);
  await stampChanges(admin.db);
});
afterAll(() => admin.stop());

const within = (text: string) => expect(text.length).toBeLessThan(MOST + 100_000);

test('the feed ends a page at 8 MB, misses none, and gives none twice', async () => {
  const seen: string[] = [];
  let pages = 0;
  for (let after = 0; ; pages += 1) {
    const answer = await admin.call('GET', `/api/changes?after=${after}&limit=10000`);
    within(answer.text);
    if (answer.json.data.length === 0) break;
    seen.push(...answer.json.data.map(({ seq, id }: { seq: number; id: string }) => `${seq} ${id}`));
    after = answer.json.next_after;
    expect(after).toBe(answer.json.data.at(-1).seq);
  }
  expect(pages).toBe(4);
  const inOrder = [...records(30).map((text) => (JSON.parse(text) as { id: string }).id), ...ids, ...ids];
  expect(seen).toEqual(inOrder.map((id, n) => `${n + 1} ${id}`));
});

test('as lines, too', async () => {
  const answer = await admin.call('GET', '/api/changes?after=30&limit=10000', undefined, {
    accept: 'application/x-ndjson',
  });
  within(answer.text);
  const lines = answer.text.trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { seq: number }).seq)).toEqual([31, 32]);
  expect(answer.headers.get('x-next-after')).toBe('32');
});

test('a change that is larger than a page comes alone', async () => {
  const company = await onboard(admin.db);
  const walk = await openWalk(admin.db, company);
  await write(admin.db, walk, [`{"id":"1","text":"${'c'.repeat(MOST)}"}`, '{"id":"2"}']);
  await stampChanges(admin.db);
  const { json } = await admin.call('GET', '/api/changes?after=38&limit=10');
  expect(json.data.map(({ id }: { id: string }) => id)).toEqual(['1']);
  expect((await admin.call('GET', `/api/changes?after=${json.next_after}`)).json.data).toHaveLength(1);
});

test('a diff ends a page at 8 MB, and comes to the end of the list', async () => {
  const seen: string[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const address = `/api/runs/${second.runId}/diff?against=${first.runId}&limit=500${cursor && `&cursor=${cursor}`}`;
    const answer = await admin.call('GET', address);
    expect(answer.text.length).toBeLessThan(2 * MOST);
    seen.push(...answer.json.data.map(({ id }: { id: string }) => id));
    cursor = answer.json.next_cursor;
  }
  expect(seen).toEqual(ids);
});
