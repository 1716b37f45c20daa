import { Agent, get, type IncomingMessage } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { Drain } from '../../../src/api/plumbing/drain.js';
import { readinessOf } from '../../../src/api/plumbing/readiness.js';
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
  const passing = drain.pass().then(() => {
    isOver = true;
  });
  expect(drain.pass()).toBe(drain.pass());
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

test('a page that is being made when the server closes says that the process is being stopped', async () => {
  const admin = await startAdmin();
  const client = await PageClient.signedIn(admin.url);
  const pages = Array.from({ length: 20 }, () => client.open('/companies'));
  const stopped = admin.stop();
  const shown = await Promise.allSettled(pages);
  await stopped;
  const statuses = shown.flatMap((each) => (each.status === 'fulfilled' ? [each.value.status] : []));
  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(admin.log()).not.toMatch(/A page failed/);
});
