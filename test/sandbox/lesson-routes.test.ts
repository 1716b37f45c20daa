import { expect, test } from 'vitest';
import { FEW, lessonSandbox, MANY } from './lesson-sandbox.js';

const { clock, sandbox } = await lessonSandbox();

async function control(method: string, path: string, body?: object, token = sandbox.controlToken.reveal()) {
  const response = await fetch(new URL(`/sandbox/lessons${path}`, sandbox.url), {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as unknown };
}

test('lessons are begun, told and ended', async () => {
  const target = { company_id: FEW, list: 'absences', seconds: 30 };
  const forbid = { lesson: 'forbid', company_id: FEW, company: 'Few', list: 'absences', until: at(30) };
  expect(await control('POST', '/forbid/break', target)).toEqual({ status: 200, body: forbid });
  const revoke = { lesson: 'revoke', company_id: MANY, company: 'Many', list: null, until: null };
  expect(await control('POST', '/revoke/break')).toEqual({ status: 200, body: revoke });
  expect(await control('GET', '')).toEqual({ status: 200, body: { data: [forbid, revoke] } });
  expect(await control('POST', '/revoke/mend')).toEqual({ status: 200, body: { data: [revoke] } });
  expect(await control('POST', '/mend')).toEqual({ status: 200, body: { data: [forbid] } });
  expect(await control('GET', '')).toEqual({ status: 200, body: { data: [] } });
});

test('only by the holder of the token', async () => {
  sandbox.lessons.break('forbid');
  for (const [method, path] of [
    ['GET', ''],
    ['POST', '/lie/break'],
    ['POST', '/mend'],
    ['POST', '/forbid/mend'],
  ] as const) {
    for (const token of ['', 'wrong', 'x'.repeat(sandbox.controlToken.reveal().length)])
      expect((await control(method, path, undefined, token)).status).toBe(401);
    expect((await fetch(new URL(`/sandbox/lessons${path}`, sandbox.url), { method })).status).toBe(401);
  }
  expect(sandbox.lessons.active.map(({ lesson }) => lesson.name)).toEqual(['forbid']);
});

test.each<[string, object, number, RegExp]>([
  ['/forgive/break', {}, 400, /no lesson "forgive"/],
  ['/forgive/mend', {}, 400, /no lesson "forgive"/],
  ['/shrink/break', { company_id: FEW }, 400, /Choose another company/],
  ['/shrink/break', { company_id: 'd1d1d1d1-0000-4000-8000-00000000000d' }, 404, /no company d1d1/],
  ['/shrink/break', { company_id: 7 }, 400, /must be texts/],
  ['/shrink/break', { seconds: -1 }, 400, /seconds a number above 0/],
  ['/shrink/break', { seconds: 1e300 }, 400, /seconds a number above 0/],
])('%s %j is refused', async (path, body, status, message) => {
  expect(await control('POST', path, body)).toEqual({
    status,
    body: expect.objectContaining({ message: expect.stringMatching(message) }),
  });
  expect(sandbox.lessons.active).toEqual([]);
});

const at = (seconds: number) => new Date(clock.now() + seconds * 1000).toISOString();
