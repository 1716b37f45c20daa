import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

/** The whole answer to bytes that no HTTP client would send. */
async function send(bytes: string): Promise<{ status: number; head: string; body: string }> {
  const { hostname, port } = new URL(admin.url);
  const socket = connect(Number(port), hostname);
  socket.setTimeout(30_000, () => socket.destroy(new Error('no answer, or one without an end')));
  socket.write(bytes);
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  const [head = '', body = ''] = text.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body };
}

test.each<[string, string, number]>([
  ['huge headers', `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Canary: ${'canary'.repeat(10_000)}\r\n\r\n`, 431],
  ['no HTTP', 'canary\r\n\r\n', 400],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
  ['an unknown method', 'CANARY /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['a line break in a header', 'GET /healthz HTTP/1.1\r\nHost: x\r\nA: canary\rB: c\r\n\r\n', 400],
  [
    'two lengths',
    'POST /api/syncs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /canary HTTP/1.1\r\n\r\n',
    400,
  ],
  ['a length that is none', 'POST /api/syncs HTTP/1.1\r\nHost: x\r\nContent-Length: canary\r\n\r\n', 400],
  ['no host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
  ['no host at an unknown address', 'GET /canary HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
  ['two hosts', 'GET /healthz HTTP/1.1\r\nHost: x\r\nHost: canary\r\nConnection: close\r\n\r\n', 400],
  ['the same host twice', 'GET /healthz HTTP/1.1\r\nHost: x\r\nhost: x\r\nConnection: close\r\n\r\n', 400],
  ['two hosts of HTTP/1.0', 'GET /healthz HTTP/1.0\r\nHost: x\r\nHost: canary\r\n\r\n', 400],
  ['two hosts at an unknown address', 'GET /canary HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n', 400],
  ...['x y', 'x/canary', 'canary@x', 'x:canary', 'http://x', '[canary]', 'x, y', 'x\ty', 'x?', '::1'].map(
    (host): [string, string, number] => [
      `the host ${host}`,
      `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      400,
    ],
  ),
  ['an expectation', 'GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: canary\r\nConnection: close\r\n\r\n', 417],
])('answers %s with a problem', async (_what, bytes, status) => {
  const answer = await send(bytes);
  expect(answer.status).toBe(status);
  expect(answer.head).toContain('content-type: application/problem+json');
  expect(JSON.parse(answer.body)).toEqual({
    type: 'urn:muster:error:invalid_request',
    title: 'Invalid request',
    status,
    detail: expect.stringMatching(/^[A-Z].*\.$/),
    code: 'invalid_request',
  });
  expect(answer.body + admin.log()).not.toMatch(/canary/i);
});

test('needs no host of HTTP/1.0', async () => {
  expect((await send('GET /healthz HTTP/1.0\r\n\r\n')).status).toBe(200);
});

test.each(['x', 'X.example.com:8080', '127.0.0.1:1', '[::1]:8080', 'xn--bcher-kva.example', 'a_b', ''])(
  'takes the host %s',
  async (host) => {
    expect((await send(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status).toBe(200);
  },
);

test('takes an address with a host for its path, as a proxy may send it', async () => {
  const statusOf = async (target: string) =>
    (await send(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)).status;
  expect(await statusOf('http://x/healthz')).toBe(200);
  expect(await statusOf('http://canary/api/companies')).toBe(401);
  expect(await statusOf('//canary/healthz')).toBe(404);
});

test('goes on after them', async () => {
  expect((await admin.fetch('/healthz')).status).toBe(200);
});
