import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Express } from 'express';

/** A list that somebody else's server serves on a socket of its own. */
export interface ForeignService {
  /** `http://127.0.0.1:<port>`, without a path. */
  readonly url: URL;
  /** What it serves, in order. A test that changes this array changes the list. */
  readonly records: object[];
  stop(): Promise<void>;
}

/** The company's own record, which every run asks for: no foreign server has it. */
export function serveCompany(app: Express): void {
  app.get('/api/companies/:id', ({ params: { id } }, response) => response.json({ id, name: 'Foreign' }));
}

export async function listen(app: Express, records: object[]): Promise<ForeignService> {
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    records,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
