import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { showFirstMirror } from '../../../src/cli/serve/first-mirror.js';
import type { RunRow } from '../../../src/db/tables/runs.js';
import type { WalkRow } from '../../../src/db/tables/walks.js';

let printed: string;
beforeEach(() => {
  printed = '';
  vi.spyOn(console, 'log').mockImplementation((line: string) => void (printed += `${line}\n`));
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
});
afterEach(() => vi.restoreAllMocks());

const walk = (resource: string, result: Partial<WalkRow>) => ({
  resource,
  status: 'succeeded' as WalkRow['status'],
  verified: true,
  proof: 'join',
  unverifiedReason: null,
  pages: 1,
  pass: 1,
  received: 37,
  inserted: 37,
  updated: 0,
  unchanged: 0,
  deleted: 0,
  rejected: 0,
  duplicates: 0,
  totalRecords: 37,
  resumed: false,
  startedAt: null,
  finishedAt: null,
  error: null,
  ...result,
});

async function show(...walks: ReturnType<typeof walk>[]): Promise<string> {
  const status = walks.every((one) => one.status === 'succeeded') ? 'succeeded' : 'failed';
  const run = {
    id: 'the-run',
    companyId: 'the-company',
    status,
    createdAt: new Date(),
    startAfter: new Date(),
    error: null,
    walks,
  } as unknown as RunRow;
  const companies = [{ companyId: 'the-company', name: 'Nordlia' }];
  const signal = new AbortController().signal;
  await showFirstMirror({ find: async () => run }, companies, async () => ['the-run'], { signal });
  return printed;
}

test('shows what was mirrored', async () => {
  expect(await show(walk('employees', {}), walk('departments', {}))).toMatch(
    /^Mirrored in \d+\.\d s:\n\n {2}COMPANY +RESOURCE +RECORDS .*\n {2}Nordlia +employees +37 .*proved \(join\)\n.*\n$/,
  );
});

test('says at the top how many lists failed, and where to see why', async () => {
  const failed = walk('departments', {
    status: 'failed',
    verified: false,
    error: { code: 'service_refused', message: 'The service answered 403.' },
  });
  const text = await show(walk('employees', {}), failed);
  expect(text).toMatch(/^Mirrored in \d+\.\d s, 1 list failed:\n/);
  expect(text).toMatch(/failed: service_refused\n\n {2}To see why: \.\/bin\/muster runs show the-run\n$/);
});
