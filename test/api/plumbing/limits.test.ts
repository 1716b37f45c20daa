import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SERVER_LIMITS } from '../../../src/api/plumbing/server-limits.js';
import { waitFor } from '../../support/wait-for.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

const CONNECTIONS = 20;

/** Has room for few connections. */
let admin: AdminFixture;
/** Has room for many, and little time for each. */
let hasty: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin(undefined, { limits: { ...SERVER_LIMITS, connections: CONNECTIONS, lingerMs: 400 } });
  hasty = await startAdmin(undefined, { limits: { ...SERVER_LIMITS, headersMs: 1_000, requestMs: 1_500, checkMs: 50 } });
});
afterAll(async () => {
  await admin.stop();
  await hasty.stop();
});

interface Opened {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  /** What it was sent so far. */
  readonly text: () => string;
}

/** A connection to which bytes are written as they are. */
async function open(bytes = '', to = admin): Promise<Opened> {
  const { hostname, port } = new URL(to.url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  socket.on('error', () => {});
  // Not by `once`, which rejects where the connection is reset.
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await Promise.race([closed, new Promise((resolve) => socket.once('connect', resolve))]);
  socket.write(bytes);
  return { socket, closed, text: () => text };
}

const head = (line: string, ...headers: string[]) => [line, 'Host: x', ...headers, '', ''].join('\r\n');
const RIGHT = `Authorization: Bearer ${TOKEN}`;
const JSON_BODY = ['Content-Type: application/json', 'Content-Length: 200000'];

test.each<[string, string, number]>([
  ['no token', head('POST /api/companies HTTP/1.1', ...JSON_BODY), 401],
  ['no token and an unknown address', head('POST /api/canary HTTP/1.1', ...JSON_BODY), 401],
  ['an unknown address', head('POST /canary HTTP/1.1', ...JSON_BODY), 404],
  ['an unknown address of the API', head('POST /api/canary HTTP/1.1', RIGHT, ...JSON_BODY), 404],
  ['a wrong method', head('POST /healthz HTTP/1.1', ...JSON_BODY), 405],
  ['a body in chunks', head('POST /canary HTTP/1.1', 'Content-Type: application/json', 'Transfer-Encoding: chunked'), 404],
])('%s is answered before the body has come, and the connection ends', async (_what, bytes, status) => {
  const { socket, closed, text } = await open(bytes);
  await waitFor(() => text().startsWith(`HTTP/1.1 ${status} `));
  expect(text()).toContain('application/problem+json');
  // What still comes is thrown away, and for a while only.
  const writing = setInterval(() => socket.write('x'), 20);
  await closed;
  clearInterval(writing);
});

test('a request whose body comes a little later than its answer keeps the connection', async () => {
  const body = 'x'.repeat(200_000);
  // It lingers for longer than a slow machine holds the body up.
  const patient = await startAdmin(undefined, { limits: { ...SERVER_LIMITS, lingerMs: 60_000 } });
  const { socket, closed, text } = await open(head('POST /canary HTTP/1.1', ...JSON_BODY), patient);
  await waitFor(() => text().includes('404'));
  socket.write(body + head('GET /healthz HTTP/1.1', 'Connection: close'));
  await closed;
  await patient.stop();
  expect(text()).toMatch(/HTTP\/1\.1 200 OK[^]*\{"status":"ok"\}$/);
});

test.each<[string, string]>([
  ['nothing', ''],
  ['headers without an end', 'GET /healthz HTTP/1.1\r\nHost: x\r\n'],
  ['a body without an end', head('POST /api/companies HTTP/1.1', RIGHT, ...JSON_BODY)],
])('%s gets 408 after a while, and the connection ends', async (_what, bytes) => {
  const { socket, closed, text } = await open(bytes, hasty);
  const writing = setInterval(() => socket.write(bytes && 'x'), 100);
  await closed;
  clearInterval(writing);
  expect(text()).toMatch(/^HTTP\/1\.1 408 [^]*"code":"invalid_request"/);
});

test('however many connections there are, a probe is answered, and no caller with a token is cut off', async () => {
  const company = await admin.addCompany();
  const { id } = await admin.runs.request({ company, trigger: 'manual' });
  const stream = await open(head(`GET /api/runs/${id}/events HTTP/1.1`, RIGHT));
  await waitFor(() => stream.text().includes('event: run'));
  const flood = await Promise.all(
    Array.from({ length: CONNECTIONS * 5 }, (_, i) =>
      open(i % 2 ? 'GET /healthz HTTP/1.1\r\n' : head('POST /api/x HTTP/1.1', ...JSON_BODY)),
    ),
  );
  const probe = await admin.fetch('/readyz', { headers: { connection: 'close' } });
  expect([probe.status, await probe.json()]).toMatchObject([200, { ready: true }]);
  await waitFor(() => flood.filter(({ socket }) => !socket.destroyed).length < CONNECTIONS);
  expect(stream.socket.destroyed).toBe(false);
  await admin.runs.cancel(id);
  await waitFor(() => stream.text().includes('"status":"cancelled"'));
  for (const { socket } of [stream, ...flood]) socket.destroy();
});

test('a caller with a token is not cut off by any number of requests that wait for their answers', async () => {
  const { id } = await admin.runs.request({ company: await admin.addCompany(), trigger: 'manual' });
  const stream = await open(head(`GET /api/runs/${id}/events HTTP/1.1`, RIGHT));
  await waitFor(() => stream.text().includes('event: run'));
  let answer = (_value?: unknown): void => {};
  const answered = new Promise((resolve) => (answer = resolve));
  admin.readiness.push({ name: 'slow', check: () => answered });
  const waiting: Opened[] = [];
  let taken = 0;
  const count = () => void (taken += 1);
  subscribe('http.server.request.start', count);
  for (let i = 0; i < CONNECTIONS * 2; i++) {
    waiting.push(await open(head('GET /readyz HTTP/1.1')));
    await waitFor(() => taken > i); // the server has its request before the next connection comes
  }
  unsubscribe('http.server.request.start', count);
  await waitFor(() => waiting.filter(({ socket }) => !socket.destroyed).length < CONNECTIONS);
  admin.readiness.pop();
  answer();
  await waitFor(() => waiting.at(-1)!.text().includes('"ready":true'));
  expect(stream.socket.destroyed).toBe(false);
  for (const { socket } of [stream, ...waiting]) socket.destroy();
});

test('a request that is answered is not answered a second time where its body goes wrong', async () => {
  const { socket, closed, text } = await open(
    head('POST /canary HTTP/1.1', 'Content-Type: application/json', 'Transfer-Encoding: chunked'),
  );
  await waitFor(() => text().includes('404'));
  socket.write('canary\r\n');
  await closed;
  expect(text().match(/HTTP\/1\.1/g)).toHaveLength(1);
});

test('a few requests may wait for their answers on one connection, and no thousand', async () => {
  const one = head('GET /healthz HTTP/1.1');
  const few = await open(one.repeat(3) + head('GET /healthz HTTP/1.1', 'Connection: close'));
  await few.closed;
  expect(few.text().match(/"status":"ok"/g)).toHaveLength(4);
  const many = await open(one.repeat(1_000));
  await many.closed;
  expect(many.text()).toBe('');
});

test('what is no HTTP is not answered into an answer that is under way', async () => {
  const company = await admin.addCompany();
  const { id } = await admin.runs.request({ company, trigger: 'manual' });
  const { socket, closed, text } = await open(head(`GET /api/runs/${id}/events HTTP/1.1`, RIGHT));
  await waitFor(() => text().includes('event: run'));
  socket.write('canary\r\n\r\n');
  await closed;
  expect(text().match(/HTTP\/1\.1/g)).toHaveLength(1);
});

test('what is no HTTP is not taken for the answer to the request before it', async () => {
  let answer = (_value?: unknown): void => {};
  admin.readiness.push({ name: 'slow', check: () => new Promise((resolve) => (answer = resolve)) });
  const { closed, text } = await open(`${head('GET /readyz HTTP/1.1')}canary\r\n\r\n`);
  await closed;
  admin.readiness.pop();
  answer();
  expect(text()).toBe('');
});

test('an idle connection is kept for the next request while there is room', async () => {
  const { socket, closed, text } = await open(head('GET /healthz HTTP/1.1'), hasty);
  await waitFor(() => text().endsWith('{"status":"ok"}'));
  // A request that begins later, and never ends, has taken too long.
  const { closed: expired } = await open(head('POST /api/companies HTTP/1.1', RIGHT, ...JSON_BODY), hasty);
  await expired;
  socket.write(head('GET /healthz HTTP/1.1', 'Connection: close'));
  await closed;
  expect(text().match(/"status":"ok"/g)).toHaveLength(2);
});
