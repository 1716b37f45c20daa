import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ProbeServer } from '../../../src/api/plumbing/probe-server.js';
import type { ReadinessCheck } from '../../../src/api/plumbing/readiness.js';
import { systemClock as clock } from '../../../src/core/clock.js';
import { anyPort } from '../../support/port.js';

let port: number;
let readiness: ReadinessCheck[];
let probes: ProbeServer;
beforeEach(async () => {
  port = anyPort();
  readiness = [{ name: 'database', check: async () => {} }];
  probes = new ProbeServer({ host: '127.0.0.1', port, clock, readiness });
  await probes.start();
});
afterEach(() => probes.stop());

const ask = async (path: string, method = 'GET') => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method });
  const text = await answer.text();
  return [answer.status, text === '' ? null : (JSON.parse(text) as unknown)];
};

test('answers both probes without a token', async () => {
  expect(await ask('/healthz')).toEqual([200, { status: 'ok' }]);
  expect(await ask('/readyz?verbose')).toEqual([200, { ready: true, parts: { database: { ready: true } } }]);
  expect(await ask('/healthz', 'HEAD')).toEqual([200, null]);
});

test('is not ready while a part is missing, and alive all the same', async () => {
  readiness.push({ name: 'queue', check: () => Promise.reject(new Error('secret inside')) });
  const parts = { database: { ready: true }, queue: { ready: false, problem: 'failed' } };
  expect(await ask('/readyz')).toEqual([503, { ready: false, parts }]);
  expect((await ask('/healthz'))[0]).toBe(200);
});

test('answers nothing else', async () => {
  for (const path of ['/', '/metrics', '/api/overview', '/healthz/', '//healthz']) expect((await ask(path))[0]).toBe(404);
  expect((await ask('/readyz', 'POST'))[0]).toBe(405);
});

test('a port that is taken is a wrong setting, which is named', async () => {
  const second = new ProbeServer({ host: '127.0.0.1', port, clock, readiness });
  await expect(second.start()).rejects.toMatchObject({
    code: 'invalid_configuration',
    message: expect.stringMatching(new RegExp(`^PROBE_PORT: port ${port} on 127.0.0.1 is taken`)),
  });
  await second.stop();
});

test('its stop ends connections that are open, frees the port, and may come twice', async () => {
  expect((await ask('/healthz'))[0]).toBe(200); // whose connection is kept
  await Promise.all([probes.stop(), probes.stop()]);
  const other = createServer();
  await new Promise<void>((resolve, reject) => void other.on('error', reject).listen(port, '127.0.0.1', resolve));
  await new Promise((resolve) => other.close(resolve));
});
