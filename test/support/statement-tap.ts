import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A statement as a client sent it to PostgreSQL. */
export interface TappedStatement {
  /** Statements of one connection have the same. */
  readonly connection: number;
  readonly text: string;
  /** As their texts; null for NULL. */
  readonly values: readonly (string | null)[];
}

export interface StatementTap {
  /** Where clients connect to instead of the server. */
  readonly url: string;
  /** All of them so far, in the order in which they were sent. */
  readonly statements: readonly TappedStatement[];
  close(): Promise<void>;
}

/** Stands between clients and a PostgreSQL, and writes down each statement that is executed, with its values. It changes nothing. */
export async function tapStatements(databaseUrl: string): Promise<StatementTap> {
  const target = new URL(databaseUrl);
  const statements: TappedStatement[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    const messages = new ClientMessages(++connections, (statement) => statements.push(statement));
    client.on('data', (bytes) => messages.read(bytes));
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    statements,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

/**
 * What a client says in the protocol of PostgreSQL: first one message without a type, then messages of a type, a length and a body. Simple queries
 * carry their text. Others are parsed under a name, which each binding of values names again.
 */
class ClientMessages {
  readonly #connection: number;
  readonly #tell: (statement: TappedStatement) => void;
  readonly #parsed = new Map<string, string>();
  #bytes: Buffer = Buffer.alloc(0);
  #hasBegun = false;

  constructor(connection: number, tell: (statement: TappedStatement) => void) {
    this.#connection = connection;
    this.#tell = tell;
  }

  read(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    for (;;) {
      const typeLength = this.#hasBegun ? 1 : 0;
      if (this.#bytes.length < typeLength + 4) return;
      const end = typeLength + this.#bytes.readInt32BE(typeLength);
      if (this.#bytes.length < end) return;
      const type = this.#hasBegun ? String.fromCharCode(this.#bytes[0]!) : '';
      this.#take(type, new Body(this.#bytes.subarray(typeLength + 4, end)));
      this.#hasBegun = true;
      this.#bytes = this.#bytes.subarray(end);
    }
  }

  #take(type: string, body: Body): void {
    if (type === 'Q') this.#tell({ connection: this.#connection, text: body.text(), values: [] });
    if (type === 'P') this.#parsed.set(body.text(), body.text());
    if (type !== 'B') return;
    body.text(); // the portal
    const text = this.#parsed.get(body.text()) ?? '';
    for (let formats = body.int16(); formats > 0; formats--)
      if (body.int16() !== 0) throw new Error('A value came in binary, which nothing here reads.');
    const values = Array.from({ length: body.int16() }, () => body.value());
    this.#tell({ connection: this.#connection, text, values });
  }
}

class Body {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Up to the next zero. */
  text(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    const text = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end + 1;
    return text;
  }

  int16(): number {
    this.#at += 2;
    return this.#bytes.readInt16BE(this.#at - 2);
  }

  value(): string | null {
    const length = this.#bytes.readInt32BE(this.#at);
    this.#at += 4;
    if (length < 0) return null;
    this.#at += length;
    return this.#bytes.toString('utf8', this.#at - length, this.#at);
  }
}
