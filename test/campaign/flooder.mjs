// Holds many connections to a server, each as slow as it may be: `node flooder.mjs <port> <count> <kind> <path> <token>`. It opens a fifth of them a
// second, and each again five seconds after its end. Says `open` once as many as asked for were opened, and on SIGTERM what became of them.
import { connect } from 'node:net';

const [port, count, kind, path, token] = process.argv.slice(2);

/** How long it takes to open all, and how long one that has ended stays away. */
const AGAIN_MS = 5_000;
/** How often each sends a little more, a tenth of them at a time. */
const DRIP_MS = 1_000;

const REQUESTS = {
  headers: () => 'GET /readyz HTTP/1.1\r\nHost: x\r\n',
  bodies: () =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 250000\r\n\r\n"${'x'.repeat(60_000)}`,
  streams: () => `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  scrapes: () => 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n',
};
/** Sockets that wait for an answer: a scraper asks again once it has one. */
const waiting = new Set();
const DRIPS = { headers: 'X-More: of it\r\n', bodies: 'x'.repeat(1_000), scrapes: REQUESTS.scrapes() };

let opened = 0;
let ended = 0;
const sockets = new Set();
const statuses = {};

function open() {
  const socket = connect({ port: Number(port), host: '127.0.0.1' }, () => {
    opened += 1;
    if (opened === Number(count)) console.log('open');
    waiting.add(socket);
    socket.write(REQUESTS[kind]());
  });
  sockets.add(socket);
  socket.on('data', (chunk) => {
    waiting.delete(socket);
    const [, status] = /^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1')) ?? [];
    if (status) statuses[status] = (statuses[status] ?? 0) + 1;
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    ended += 1;
    sockets.delete(socket);
    waiting.delete(socket);
    setTimeout(open, AGAIN_MS);
  });
}

for (let i = 0; i < Number(count); i++) setTimeout(open, (i / Number(count)) * AGAIN_MS);
let tenth = 0;
setInterval(() => {
  tenth = (tenth + 1) % 10;
  for (const socket of sockets) {
    const isReady = socket.writable && !socket.connecting && (kind !== 'scrapes' || !waiting.has(socket));
    if (!DRIPS[kind] || !isReady || socket.localPort % 10 !== tenth) continue;
    waiting.add(socket);
    socket.write(DRIPS[kind]);
  }
}, DRIP_MS / 10);
process.on('SIGTERM', () => {
  console.log(JSON.stringify({ opened, ended, now: sockets.size, statuses }));
  process.exit(0);
});
