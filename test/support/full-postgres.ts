import { connect, createServer, type Socket } from 'node:net';

export interface FullPostgres {
  /** Of the same database, by way of this server. */
  readonly url: string;
  /** Connections refused so far. */
  readonly refused: number;
  /** From now on, connections whose startup message has this text are refused after the next `after`. */
  refuse(text: string, after?: number): void;
  accept(): void;
  close(): Promise<void>;
}

/** Stands before PostgreSQL and answers new connections, when told, as one that has too many already. */
export async function fullPostgres(target: string): Promise<FullPostgres> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let text: string | undefined;
  let left = 0;
  let refused = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.once('data', (startup) => {
      if (text !== undefined && startup.includes(text) && left-- <= 0) {
        refused += 1;
        socket.end(tooManyClients());
        return;
      }
      const upstream = connect(Number(port), hostname);
      upstream.on('error', () => socket.destroy()).on('close', () => socket.destroy());
      socket.on('close', () => upstream.destroy());
      upstream.write(startup);
      socket.pipe(upstream).pipe(socket);
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    get refused() {
      return refused;
    },
    refuse: (which, after = 0) => {
      text = which;
      left = after;
    },
    accept: () => (text = undefined),
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

/** An ErrorResponse: https://www.postgresql.org/docs/current/protocol-message-formats.html */
function tooManyClients(): Buffer {
  const fields = Buffer.from('SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0');
  const head = Buffer.alloc(5, 'E');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}
