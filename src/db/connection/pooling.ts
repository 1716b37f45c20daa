import type pg from 'pg';
import { connectionOptions, sessionOptions } from './connection-options.js';
import { DatabaseClient } from './database-client.js';
import { prepareSession } from './session.js';

/** One look at a pooler that other clients keep busy may see the same connection twice by chance. */
const LOOKS = 5;

/**
 * Whether DATABASE_URL leads through a pooler that gives each transaction any connection of the server it has. It shows in the numbers of the server's
 * processes: one client's number changes, or two clients that are both connected meet the same one, which sessions never do.
 */
export async function poolsTransactions(url: string): Promise<boolean> {
  const clients: pg.Client[] = [];
  const connect = async () => {
    const client = new DatabaseClient(connectionOptions(url, 'muster'));
    clients.push(client.on('error', () => {})); // the query under way reports it
    await client.connect();
    return client;
  };
  try {
    const one = await connect();
    if ((await prepareSession(one, sessionOptions(url))) === 'own') return false;
    const other = await connect();
    for (let look = 0; look < LOOKS; look += 1) {
      const before = await processOf(one);
      await other.query('BEGIN');
      const others = await processOf(other);
      // Asked while the other client's connection is taken, so that this one needs another, should it not have kept its own.
      if (others === before || (await processOf(one)) !== before) return true;
      await other.query('ROLLBACK');
    }
    return false;
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
  }
}

async function processOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]!.pid;
}
