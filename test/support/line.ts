import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A port of its own that leads to a server. While the line is cut nothing listens there and every connection has ended, as if the server had been
 * killed; what the server knows stays.
 */
export class Line {
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  private constructor(target: URL) {
    this.#target = target;
  }

  static async open(target: URL): Promise<Line> {
    const line = new Line(target);
    await line.restore();
    return line;
  }

  /** The address of the server by way of the line, with the target's path. */
  get url(): URL {
    const url = new URL(this.#target);
    url.hostname = '127.0.0.1';
    url.port = String(this.#port);
    return url;
  }

  /** Resolves when connections are taken. */
  async restore(): Promise<void> {
    const server = createServer((socket) => this.#lead(socket));
    this.#server = server;
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#port = (server.address() as { port: number }).port;
  }

  /** Resolves when nothing listens any more. May be called twice. */
  async cut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #lead(socket: Socket): void {
    const upstream = connect(Number(this.#target.port), this.#target.hostname);
    for (const [end, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      this.#sockets.add(end);
      end.on('error', () => other.destroy()).on('close', () => this.#sockets.delete(end));
      end.pipe(other);
    }
  }
}
