import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { HttpClient } from '../../src/http/http-client.js';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** What a server answers that sends this text, as it stands. */
async function answerTo(text: string): Promise<unknown> {
  const server = createServer((socket) => socket.on('error', () => {}).once('data', () => socket.end(text)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const http = new HttpClient();
  closers.push(
    () => http.close(),
    () => server.close(),
  );
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/list`);
  return http.send({ method: 'GET', url }).catch((error: unknown) => error);
}

const head = (...lines: string[]) => ['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n');

test.each([
  ['two lengths', `${head('content-length: 2', 'content-length: 3')}{}`, /two of them/],
  ['a length beside chunks', `${head('content-length: 2', 'transfer-encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`, /Content-Length/],
  ['a length that is none', `${head('content-length: two')}{}`, /Content-Length/],
  ['bare line feeds', 'HTTP/1.1 200 OK\ncontent-length: 2\n\n{}', /rules of HTTP\/1\.1: Missing expected CR/],
  ['a chunk without a size', `${head('transfer-encoding: chunked')}zz\r\n{}\r\n0\r\n\r\n`, /chunk size/],
  ['a header with a space in its name', `${head('canary name: canary', 'content-length: 2')}{}`, /Invalid header token/],
  ['another protocol', 'SSH-2.0-canary\r\n\r\n', /rules of HTTP/],
  ['headers of 70 KB', `${head(`x-policy: ${'canary'.repeat(12_000)}`, 'content-length: 2')}{}`, /larger than 64 KB/],
])('%s: the answer cannot be read, and the message says why', async (_, text, why) => {
  const error = await answerTo(text);
  expect(error).toMatchObject({ code: 'malformed_response', sent: true, retryable: true, message: expect.stringMatching(why) });
  expect(String(error)).not.toMatch(/canary|broke before/);
});

test('headers of 60 KB are read', async () => {
  const text = `${head(`x-policy: ${'y'.repeat(60_000)}`, 'content-length: 2')}{}`;
  expect(await answerTo(text)).toMatchObject({ status: 200, bytes: Buffer.from('{}') });
});

test('a connection that ends within the body broke, and is no answer that cannot be read', async () => {
  expect(await answerTo(`${head('content-length: 9')}{}`)).toMatchObject({ code: 'service_unreachable' });
});
