import { afterAll, beforeEach } from 'vitest';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { TokenServer } from './token-server.js';

/**
 * A database and an authorization server for the tests of one file, closed after them. Each test begins with no company, and with a server that has received
 * nothing and will answer as it should.
 */
export async function oauthSuite(): Promise<{ database: TestDatabase; server: TokenServer }> {
  const database = await testDatabase();
  const server = await TokenServer.start();
  beforeEach(async () => {
    server.misdeeds.length = 0;
    server.received.length = 0;
    await database.db.pool.query('DELETE FROM muster.connections');
  });
  afterAll(async () => {
    await server.stop();
    await database.close();
  });
  return { database, server };
}
