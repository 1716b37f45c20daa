import { Agent, get, type IncomingMessage } from 'node:http';
import Fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { Drain } from '../../../src/api/plumbing/drain.js';
import { InProcessApi } from '../../../src/api/plumbing/in-process-api.js';
import { readinessOf } from '../../../src/api/plumbing/readiness.js';
import { systemClock } from '../../../src/core/clock.js';
import { PageClient } from '../../dashboard/page-client.js';
import { startAdmin } from '../admin-fixture.js';

/** A clock whose sleep ends when it is told to. */
function heldClock() {
  let wake = () => {};
  const slept: number[] = [];
  const sleep = (ms: number) => {
    slept.push(ms);
    return new Promise<void>((resolve) => {
      wake = resolve;
    });
  };
  return { clock: { sleep }, slept, wake: () => wake() };
}

test('a process that is told to stop is not ready, and answers until the drain is over, once on each connection', async () => {
  const { clock, slept, wake } = heldClock();
  const drain = new Drain(clock, 7);
  const admin = await startAdmin(undefined, { drain, readiness: [drain.check] });
  const agent = new Agent({ keepAlive: true });
  onTestFinished(async () => {
    agent.destroy();
    await admin.stop();
  });
  const ask = () =>
    new Promise<IncomingMessage>((resolve, reject) =>
      get(`${admin.url}/readyz`, { agent }, (response) => resolve(response.resume())).on('error', reject),
    );
  const before = await ask();
  expect([before.statusCode, before.headers.connection]).toEqual([200, 'keep-alive']);
  let isOver = false;
  const passing = (async () => {
    await drain.stop();
    isOver = true;
  })();
  expect(drain.stop()).toBe(drain.stop());
  expect(await readinessOf([drain.check])).toMatchObject({
    ready: false,
    parts: { process: { problem: expect.stringMatching(/stopped/) } },
  });
  const during = await ask();
  expect([during.statusCode, during.headers.connection]).toEqual([503, 'close']);
  const page = await (await PageClient.signedIn(admin.url)).open('/');
  expect([page.status, page.headers.get('connection')]).toEqual([200, 'close']);
  expect([isOver, slept]).toEqual([false, [7_000]]);
  wake();
  await passing;
});

test.each(['before', 'during'])('a process that must not go on ends without a drain, told so %s it', async (when) => {
  const drain = new Drain(systemClock, 300);
  if (when === 'before') drain.skip();
  const drained = drain.stop();
  drain.skip();
  await drained;
  expect(await readinessOf([drain.check])).toMatchObject({ ready: false });
});

test('a page that needs the API once the server is closed says that the process is being stopped', async () => {
  const app = Fastify();
  const calls = new InProcessApi(app);
  app.get('/api/overview', async () => ({ ready: true }));
  await app.ready();
  const call = () => calls.call({ name: 'anna', role: 'viewer' }, { method: 'GET', path: '/api/overview' });
  expect(await call()).toEqual({ status: 200, body: { ready: true } });
  await app.close();
  await expect(call()).rejects.toMatchObject({ code: 'stopping', status: 503 });
});
