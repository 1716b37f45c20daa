import { afterAll, beforeAll, expect, test } from 'vitest';
import { SERVER_LIMITS } from '../../../src/api/plumbing/server-limits.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { waitFor } from '../../support/wait-for.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

let admin: AdminFixture;
let company: CompanyKey;

beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
});
afterAll(() => admin.stop());

async function* statuses(id: string, token = TOKEN): AsyncGenerator<string> {
  const response = await admin.fetch(`/api/runs/${id}/events`, { headers: { authorization: `Bearer ${token}` } });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end))!;
      yield `${name} ${(JSON.parse(data!) as { status: string }).status}`;
      text = text.slice(end + 2);
    }
  }
}

test('a run is told of at once, whenever it moves, and for the last time when it is over', async () => {
  const { id } = await admin.runs.request({ company, trigger: 'manual' });
  const events = statuses(id);
  expect((await events.next()).value).toBe('run queued');
  await admin.db.prisma.run.update({ where: { id }, data: { status: 'running' } });
  expect((await events.next()).value).toBe('run running');
  await admin.db.prisma.run.update({ where: { id }, data: { status: 'succeeded' } });
  expect((await events.next()).value).toBe('run succeeded');
  expect((await events.next()).done).toBe(true);
});

test('a run that is over is told of once', async () => {
  const run = await admin.runs.request({ company, trigger: 'manual' });
  await admin.runs.cancel(run.id);
  const all: string[] = [];
  for await (const event of statuses(run.id)) all.push(event);
  expect(all).toEqual(['run cancelled']);
});

test('what is no run has no events', async () => {
  expect(await admin.call('GET', `/api/runs/${crypto.randomUUID()}/events`)).toMatchObject({
    status: 404,
    json: { code: 'run_not_found' },
  });
});

test('HEAD has the headers of the stream, and leaves nobody behind who reads the run', async () => {
  const { id } = await admin.runs.request({ company, trigger: 'manual' });
  const read: string[] = [];
  const readingsOf = (run: string) => read.filter((each) => each === run).length;
  const { findAll } = admin.runs;
  admin.runs.findAll = (ids) => {
    read.push(...ids);
    return findAll.call(admin.runs, ids);
  };
  for (let i = 0; i < 5; i++) {
    const { status, headers } = await admin.call('HEAD', `/api/runs/${id}/events`);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  }
  // All runs that are watched are read together: with one that somebody does follow, this one would be read again.
  const { id: followed } = await admin.runs.request({ company: await admin.addCompany(), trigger: 'manual' });
  const events = statuses(followed);
  await events.next();
  await waitFor(() => readingsOf(followed) >= 3);
  await events.return(undefined);
  expect(readingsOf(id)).toBe(5);
  admin.runs.findAll = findAll;
});

test('refuses more streams than it bears, and takes the next one when another has ended', async () => {
  const own = await startAdmin(undefined, { limits: { ...SERVER_LIMITS, streams: 2 } });
  const { id } = await own.runs.request({ company: await own.addCompany(), trigger: 'manual' });
  const follow = () => {
    const leave = new AbortController();
    const headers = { authorization: `Bearer ${TOKEN}` };
    return own.fetch(`/api/runs/${id}/events`, { headers, signal: leave.signal }).then((response) => ({ response, leave }));
  };
  const [first] = await Promise.all([follow(), follow()]);
  const { response: refused } = await follow();
  expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('content-type')]).toEqual([
    503,
    '5',
    'application/problem+json; charset=utf-8',
  ]);
  expect(await refused.json()).toMatchObject({ code: 'overloaded' });
  expect((await own.call('HEAD', `/api/runs/${id}/events`)).status).toBe(200);
  first.leave.abort();
  await waitFor(async () => (await follow()).response.status === 200);
  await own.stop();
});

const ENDINGS: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
  'was deleted here': (id) => admin.call('DELETE', `/api/tokens/${id}`),
  'was deleted by another process': (id) => admin.db.prisma.namedToken.update({ where: { id }, data: { revokedAt: new Date() } }),
  'has expired': (id) => admin.db.pool.query('UPDATE muster.named_tokens SET expires_at = now() WHERE id = $1::uuid', [id]),
};

test.each(Object.keys(ENDINGS))('a stream ends once its token %s, and those of others go on', async (how) => {
  const { id } = await admin.runs.request({ company, trigger: 'manual' });
  const [ended, other] = [await newToken(`${how} A`), await newToken(`${how} B`)];
  const [mine, theirs, admins] = [statuses(id, ended.token), statuses(id, other.token), statuses(id)];
  for (const events of [mine, theirs, admins]) expect((await events.next()).value).toBe('run queued');
  await ENDINGS[how]!(ended.id);
  expect((await mine.next()).done).toBe(true);
  await admin.runs.cancel(id);
  for (const events of [theirs, admins]) expect((await events.next()).value).toBe('run cancelled');
});

async function newToken(name: string): Promise<{ id: string; token: string }> {
  return (await admin.call('POST', '/api/tokens', { name, role: 'viewer' })).json;
}

test('a stream does not keep the server from stopping', async () => {
  const { id } = await admin.runs.request({ company, trigger: 'manual' });
  const events = statuses(id);
  await events.next();
  await admin.server.stop();
  expect((await events.next()).done).toBe(true);
});
