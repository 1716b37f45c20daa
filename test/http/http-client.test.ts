import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { HttpClient, type HttpLimits, textOf } from '../../src/http/http-client.js';
import { waitFor } from '../support/wait-for.js';
import { fakeService, type Received } from './fake-service.js';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function setUp(answer: (request: Received, response: ServerResponse) => void, limits: HttpLimits = {}) {
  const service = await fakeService(answer);
  const http = new HttpClient(limits);
  closers.push(() => service.close());
  return { ...service, http, get: () => http.send({ method: 'GET', url: service.url }) };
}

describe('bodies', () => {
  test('gzip is undone, also of an error answer', async () => {
    for (const status of [200, 500]) {
      const { get } = await setUp((_, response) =>
        response.writeHead(status, { 'content-encoding': 'gzip' }).end(gzipSync('{"data":["ü"]}')),
      );
      const response = await get();
      expect([response.status, textOf(response)]).toEqual([status, '{"data":["ü"]}']);
    }
  });

  const plain = Buffer.from('{"data":["ü"]}');
  test.each([
    ['gzip', gzipSync(plain)],
    ['X-GZIP', gzipSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['deflate', deflateSync(plain)],
    ['deflate', deflateSync(plain, { level: 1 })],
    ['deflate', deflateRawSync(plain)],
    ['deflate', deflateRawSync(plain, { level: 0 })],
    ['br, gzip', gzipSync(brotliCompressSync(plain))],
    ['deflate,identity , gzip', gzipSync(deflateRawSync(plain))],
    ['UTF-8, gzip', gzipSync(plain)],
    ['UTF-8', plain],
    ['utf8', plain],
    ['none', plain],
    ['identity', plain],
    ['binary', plain],
    ['8bit', plain],
    ['application/json; charset=utf-8', plain],
    ['', plain],
    [',', plain],
  ])('a body in the content-encoding "%s" is read', async (coding, body) => {
    const { get } = await setUp((_, response) => response.writeHead(200, { 'content-encoding': coding }).end(body));
    expect(textOf(await get())).toBe('{"data":["ü"]}');
  });

  test.each(['zstd', 'compress', 'x-compress', 'exi', 'xz', 'gzip, ZSTD'])(
    'the content-encoding %s is refused by name',
    async (coding) => {
      const { get } = await setUp((_, response) => response.writeHead(200, { 'content-encoding': coding }).end(plain));
      await expect(get()).rejects.toMatchObject({
        code: 'malformed_response',
        message: expect.stringMatching(new RegExp(`GET 127.0.0.1.* ${coding.split(', ').at(-1)!.toLowerCase()}.*asks for gzip`)),
      });
    },
  );

  test('more codings in a row than any server applies are refused', async () => {
    const body = Array.from({ length: 5 }).reduce<Buffer>((inner) => gzipSync(inner), plain);
    const { get } = await setUp((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip, gzip, gzip, gzip, gzip' }).end(body),
    );
    await expect(get()).rejects.toMatchObject({ code: 'malformed_response', message: expect.stringContaining('at most 4') });
  });

  const large = Buffer.alloc(20 * 1024 * 1024, 'a');
  test.each([
    ['gzip', gzipSync(large)],
    ['br', brotliCompressSync(large)],
    ['deflate', deflateSync(large)],
    ['deflate', deflateRawSync(large)],
    ['gzip, br', brotliCompressSync(gzipSync(large))],
  ])('a small body in %s that grows beyond the limit is response_too_large', async (coding, bomb) => {
    const { get } = await setUp((_, response) => response.writeHead(200, { 'content-encoding': coding }).end(bomb), {
      maxBytes: 1024 * 1024,
    });
    expect(bomb.length).toBeLessThan(100_000);
    await expect(get()).rejects.toMatchObject({ code: 'response_too_large', retryable: false });
  });

  test('a body of exactly the limit is taken, one byte more is not', async () => {
    const { http, url } = await setUp(({ url: path }, response) => response.end('a'.repeat(Number(path.slice(1)))), {
      maxBytes: 1000,
    });
    expect((await http.send({ method: 'GET', url: new URL('/1000', url) })).bytes).toHaveLength(1000);
    await expect(http.send({ method: 'GET', url: new URL('/1001', url) })).rejects.toMatchObject({ code: 'response_too_large' });
  });

  test.each([
    ['half a gzip', { 'content-encoding': 'gzip' }, gzipSync('x'.repeat(1000)).subarray(0, 20)],
    ['no gzip at all', { 'content-encoding': 'gzip' }, Buffer.from('plain')],
    ['half a brotli', { 'content-encoding': 'br' }, brotliCompressSync('x'.repeat(1000)).subarray(0, -1)],
    ['half a zlib', { 'content-encoding': 'deflate' }, deflateSync('x'.repeat(1000)).subarray(0, -6)],
    ['half a raw deflate', { 'content-encoding': 'deflate' }, deflateRawSync('x'.repeat(1000)).subarray(0, -1)],
    ['no brotli at all', { 'content-encoding': 'br' }, Buffer.from('plain')],
    ['no deflate at all', { 'content-encoding': 'deflate' }, Buffer.from('plain')],
  ])('%s is malformed_response', async (_what, headers, body) => {
    const { get } = await setUp((_, response) => response.writeHead(200, headers).end(body));
    await expect(get()).rejects.toMatchObject({ code: 'malformed_response' });
  });

  test('bytes that are not UTF-8 are no text, whatever the status is', async () => {
    const body = Buffer.from([0x22, 0xc3, 0x28, 0x22]);
    const { get } = await setUp((_, response) => response.writeHead(503).end(body));
    const response = await get();
    expect(response).toMatchObject({ status: 503, bytes: body });
    expect(() => textOf(response)).toThrow(expect.objectContaining({ code: 'malformed_response' }));
  });
});

describe('failures', () => {
  test('no connection: service_unreachable, and surely not sent', async () => {
    const { http, url, close } = await setUp(() => {});
    await close();
    await expect(http.send({ method: 'GET', url })).rejects.toMatchObject({
      code: 'service_unreachable',
      sent: false,
      retryable: true,
    });
    const nowhere = new URL('http://nowhere.invalid/');
    await expect(http.send({ method: 'GET', url: nowhere })).rejects.toMatchObject({ code: 'service_unreachable', sent: false });
  });

  test('a TLS handshake that fails: surely not sent', async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    closers.push(async () => server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const url = new URL(`https://127.0.0.1:${(server.address() as { port: number }).port}/`);
    await expect(new HttpClient().send({ method: 'POST', url, body: 'x' })).rejects.toMatchObject({
      code: 'service_unreachable',
      sent: false,
    });
  });

  test('a connection lost after sending: service_unreachable, perhaps sent', async () => {
    const { get } = await setUp((_, response) => response.socket?.destroy());
    await expect(get()).rejects.toMatchObject({ code: 'service_unreachable', sent: true });
  });

  test('a body cut short is no answer', async () => {
    const { get } = await setUp((_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('half', () => response.socket?.destroy());
    });
    await expect(get()).rejects.toMatchObject({ code: 'service_unreachable', sent: true });
  });

  test('silence: service_timeout', async () => {
    const { get } = await setUp(() => {}, { silenceTimeoutMs: 100 });
    await expect(get()).rejects.toMatchObject({ code: 'service_timeout', sent: true, retryable: true });
  });

  test('a body that only trickles meets the deadline', async () => {
    let trickle: NodeJS.Timeout | undefined;
    const { get } = await setUp(
      (_, response) => {
        trickle = setInterval(() => response.write('x'), 20);
      },
      { deadlineMs: 200, silenceTimeoutMs: 5_000 },
    );
    await expect(get()).rejects.toMatchObject({ code: 'service_timeout' });
    clearInterval(trickle);
  });

  test('an abort rejects with its own reason, before and while sending', async () => {
    const { http, url, received } = await setUp(() => {});
    const stop = new Error('stopping');
    await expect(http.send({ method: 'GET', url, signal: AbortSignal.abort(stop) })).rejects.toBe(stop);
    const control = new AbortController();
    const sending = http.send({ method: 'GET', url, signal: control.signal });
    await waitFor(() => received.length > 0);
    control.abort(stop);
    await expect(sending).rejects.toBe(stop);
  });
});

test('connections are kept, but not for those who ask for a fresh one', async () => {
  const ports = new Set<number | undefined>();
  const { http, url } = await setUp((_, response) => {
    ports.add(response.socket?.remotePort);
    response.end('{}');
  });
  for (let i = 0; i < 10; i++) await http.send({ method: 'GET', url });
  const kept = ports.size;
  expect(kept).toBeLessThanOrEqual(2);
  for (let i = 0; i < 10; i++) await http.send({ method: 'GET', url, freshConnection: true });
  expect(ports.size).toBe(kept + 10);
});

test('redirects are given back, not followed', async () => {
  const elsewhere = await setUp((_, response) => response.end('{}'));
  const { get } = await setUp((_, response) => response.writeHead(302, { location: elsewhere.url.href }).end());
  expect((await get()).status).toBe(302);
  expect(elsewhere.received).toHaveLength(0);
});
