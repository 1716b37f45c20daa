/** A process that uses an embedded server, as `muster up` does: `node server-user.mjs HOME`. The build must be fresh. */
import pg from 'pg';
import { pino } from 'pino';
import { startEmbeddedServer } from '../../dist/embedded/embedded-server.js';

const server = await startEmbeddedServer({ home: process.argv[2] ?? '', logger: pino({ level: 'silent' }) });
const client = new pg.Client(server.url);
await client.connect();

const alive = setInterval(() => {}, 1000);
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await new Promise((resolve) => setTimeout(resolve, 500)); // had the signal reached the server too, it would be gone by now
    const { rows } = await client.query('SELECT 6 * 7 AS answer');
    console.log(`last query ${rows[0].answer}`);
    await client.end();
    await server.stop();
    console.log('stopped');
    clearInterval(alive);
  });
}
console.log(`ready ${server.url}`);
