import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

// An authorization server of its own process, forked with the milliseconds that each answer takes. Tells its port, and, whenever it
// is sent a message, how many refresh tokens have come twice: each is good once, and `company/n` gives `company/n+1`.
const latencyMs = Number(process.argv[2]);
const used = new Set<string>();
let reuses = 0;
const server = createServer({ keepAliveTimeout: 5_000 }, async (request, response) => {
  let body = '';
  for await (const chunk of request) body += String(chunk);
  const token = new URLSearchParams(body).get('refresh_token') ?? '';
  const [company, serial] = token.split('/');
  if (used.has(token)) reuses += 1;
  used.add(token);
  await sleep(latencyMs);
  response.writeHead(200, { 'content-type': 'application/json' }).end(
    JSON.stringify({
      access_token: randomBytes(300).toString('base64url'),
      expires_in: 1799,
      token_type: 'Bearer',
      refresh_token: `${company}/${Number(serial) + 1}`,
      company_id: company,
    }),
  );
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('message', () => process.send?.(reuses));
process.on('disconnect', () => process.exit());
