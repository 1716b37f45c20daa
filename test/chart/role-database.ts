import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { PostgresServer } from '../support/postgres-server.js';

/** The folder in a container in which the socket is. */
export const SOCKETS = '/var/run/postgresql';

/**
 * A PostgreSQL with the database and the roles that docs/kubernetes.md and docs/systemd.md have. Containers whose network leads nowhere reach it through a socket,
 * in a folder that is mounted into them.
 */
export class RoleDatabase {
  private constructor(
    readonly server: PostgresServer,
    readonly sockets: string,
    readonly relay: Server,
  ) {}

  static async start(): Promise<RoleDatabase> {
    const server = await PostgresServer.start();
    const superuser = new pg.Client(server.url);
    await superuser.connect();
    for (const role of ['muster_owner', 'muster_app', 'keda'])
      await superuser.query(`CREATE ROLE ${role} LOGIN PASSWORD '${role}'`);
    await superuser.query('CREATE DATABASE muster OWNER muster_owner');
    await superuser.end();
    const sockets = mkdtempSync(join(tmpdir(), 'muster-socket-'));
    chmodSync(sockets, 0o755);
    const { hostname: host, port } = new URL(server.url);
    const relay = createServer((socket) => {
      const other = connect(Number(port), host);
      socket.pipe(other).pipe(socket);
      for (const end of [socket, other]) end.on('error', () => void [socket, other].map((each) => each.destroy()));
    });
    const file = join(sockets, '.s.PGSQL.5432');
    await new Promise<void>((resolve) => void relay.listen(file, resolve));
    chmodSync(file, 0o777);
    return new RoleDatabase(server, sockets, relay);
  }

  /** The address for a role in a container. */
  static address(role: string): string {
    return `postgres://${role}:${role}@/muster?host=${SOCKETS}`;
  }

  /** A connection to the database, as the superuser unless a role is named. */
  async connect(role?: string): Promise<pg.Client> {
    const url = new URL(this.server.url);
    url.pathname = 'muster';
    if (role !== undefined) [url.username, url.password] = [role, role];
    const client = new pg.Client(url.href);
    await client.connect();
    return client;
  }

  async remove(): Promise<void> {
    this.relay.close();
    await this.server.remove();
    rmSync(this.sockets, { recursive: true, force: true });
  }
}
