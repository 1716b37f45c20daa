import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { onboard, openWalk, verifiedWalk, write } from '../mirror/mirror-fixture.js';
import type { TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';

// Pages of 8 MB, and an API whose heap holds a few of them. Many clients ask for one each, and read none of it before all are answered.

const MB = 1024 * 1024;
const HEAP_MB = 128;
const CLIENTS = 20;

let deployment: Deployment;
let api: TestProcess;
let paths: readonly string[];

beforeAll(async () => {
  deployment = await Deployment.open();
  const { db } = deployment.database;
  const company = await onboard(db);
  const version = (letter: string) => Array.from({ length: 5 }, (_, n) => `{"id":"x${n}","text":"${letter.repeat(1.9 * MB)}"}`);
  const before = await verifiedWalk(db, company, version('a'));
  const { runId, ...walk } = await openWalk(db, company);
  await write(db, { ...walk, runId }, version('b'));
  await stampChanges(db);
  paths = ['/api/changes?limit=10000', `/api/runs/${runId}/diff?against=${before.runId}`];
  deployment.env['NODE_OPTIONS'] = `--max-old-space-size=${HEAP_MB}`;
  api = await deployment.startApi();
});
afterAll(() => deployment.close());

/** The beginning of an answer, of which no more is read than a socket takes. */
function ask({ path, accept }: { readonly path: string; readonly accept: string }): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${deployment.adminToken}`, accept };
  return new Promise((resolve, reject) => {
    get(`${deployment.url}${path}`, { headers, agent: false }, resolve).on('error', reject);
  });
}

async function bytesOf(answer: IncomingMessage): Promise<number> {
  let bytes = 0;
  for await (const part of answer as AsyncIterable<Buffer>) bytes += part.length;
  return bytes;
}

test('many who ask for large pages at once are answered in turn or told to come back, and the API lives', async () => {
  const kinds = [
    { path: paths[0]!, accept: 'application/json' },
    { path: paths[0]!, accept: 'application/x-ndjson' },
    { path: paths[1]!, accept: 'application/json' },
  ];
  const firstAnswers = await Promise.all(Array.from({ length: CLIENTS }, (_, n) => ask(kinds[n % kinds.length]!)));
  const refused = firstAnswers.filter(({ statusCode }) => statusCode === 503);
  expect(refused.length).toBeGreaterThan(0);
  for (const { headers } of refused) expect(headers['retry-after']).toBe('5');
  /** The bytes of the page, which is asked for again as long as the process has no room. */
  const read = async (answer: IncomingMessage, n: number): Promise<number> => {
    const bytes = await bytesOf(answer);
    if (answer.statusCode === 200) return bytes;
    expect(answer.statusCode).toBe(503);
    return read(await ask(kinds[n % kinds.length]!), n);
  };
  for (const bytes of await Promise.all(firstAnswers.map(read))) expect(bytes).toBeGreaterThan(7 * MB);
  expect(api.stderr).not.toMatch(/heap out of memory/);
});
