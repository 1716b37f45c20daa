import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN } from './admin-fixture.js';

let admin: AdminFixture;
let company: CompanyKey;

beforeAll(async () => {
  admin = await startAdmin();
  company = await admin.addCompany();
});
afterAll(() => admin.stop());

async function* statuses(id: string): AsyncGenerator<string> {
  const response = await fetch(`${admin.url}/api/runs/${id}/events`, { headers: { authorization: `Bearer ${TOKEN}` } });
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

test('a stream does not keep the server from stopping', async () => {
  const { id } = await admin.runs.request({ company, trigger: 'manual' });
  const events = statuses(id);
  await events.next();
  await admin.server.stop();
  expect((await events.next()).done).toBe(true);
});
