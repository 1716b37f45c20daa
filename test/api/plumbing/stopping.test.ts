import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { waitFor } from '../../support/wait-for.js';
import { startAdmin, TOKEN } from '../admin-fixture.js';

test('what still comes on an open connection is refused with a problem once the server is being stopped', async () => {
  const admin = await startAdmin();
  const { hostname, port } = new URL(admin.url);
  const socket = connect(Number(port), hostname);
  socket.write('GET /api/runs HTTP/1.1\r\nHost: x\r\n');
  await admin.fetch('/healthz'); // by now it has come
  const stopped = admin.stop();
  const isAway = () =>
    fetch(`${admin.url}/healthz`, { headers: { connection: 'close' } }).then(
      () => false,
      () => true,
    );
  await waitFor(isAway);
  socket.write(`Authorization: Bearer ${TOKEN}\r\n\r\n`);
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  const [head = '', body = ''] = text.split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 503 [^]*content-type: application\/problem\+json/);
  expect(JSON.parse(body)).toMatchObject({ status: 503, code: 'stopping', detail: expect.stringMatching(/stopped/) });
  await stopped;
});

test('a connection on which an answer was under way ends with the answer, and the stop with it', async () => {
  const admin = await startAdmin();
  const agent = new Agent({ keepAlive: true });
  const address = `${admin.url}/api/docs/static/swagger-ui-bundle.js`;
  const response = await new Promise<IncomingMessage>(
    (resolve, reject) => void get(address, { agent }, resolve).on('error', reject),
  );
  const stopped = admin.stop();
  let bytes = 0;
  for await (const chunk of response) bytes += (chunk as Buffer).length;
  // More than the system keeps for a reader who has not read: the server was still sending it.
  expect(bytes).toBeGreaterThan(1_000_000);
  await stopped;
  agent.destroy();
});
