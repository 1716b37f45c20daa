import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface SocketLimitOptions {
  /** The most connections that stay open. */
  readonly connections: number;
  /** The most requests that may wait on one connection. */
  readonly pipelined: number;
  /** The time for the rest of a request that has had its response already. */
  readonly lingerMs: number;
  /** The longest silence on a connection whose authenticated caller sends a write. */
  readonly workMs: number;
}

/**
 * Bounds the connections of a server, and still accepts new ones, since a new one may be a probe. `server.maxConnections` alone would drop probes
 * during a flood. Each connection is in one of three states:
 *
 * - *idle*: no caller waits for a response. It was just opened, its request is still arriving, or the last response was sent.
 * - *asked*: a caller without a right token waits for the response to a whole request.
 * - *trusted*: the caller has shown a right token (`trust`), for this one request.
 *
 * When there are too many, the connections that have been idle longest end first, then those asked longest, and trusted ones never. Data that has
 * already arrived is read before any connection is closed: many connections may be accepted at once, and one of them may be the probe.
 *
 * A request that had its response before its body came (401, 404, 405) has `lingerMs` for the rest, which is thrown away: an immediate close would
 * reset the connection of a client that writes before it reads.
 *
 * A client may send further requests before the first is answered. A thousand fit into one read: more than a few end the connection.
 */
export class SocketLimit {
  readonly #options: SocketLimitOptions;
  readonly #open = new Set<Socket>();
  readonly #idle = new Set<Socket>();
  readonly #asked = new Set<Socket>();
  readonly #last = new WeakMap<Socket, ServerResponse>();
  readonly #waiting = new WeakMap<Socket, number>();
  #isMakingRoom = false;

  constructor(options: SocketLimitOptions) {
    this.#options = options;
  }

  /** Bounds the connections of this server, whose requests are shown to `admit`. */
  guard(server: Server): void {
    // Beyond this, even trusted callers are refused, and so are callers in a single rush of so many.
    server.maxConnections = this.#options.connections * 3;
    server.on('connection', (socket) => this.#add(socket));
  }

  /** Returns whether to handle the request. If not, its connection has ended. */
  admit(request: IncomingMessage, response: ServerResponse): boolean {
    const { socket } = request;
    const waiting = (this.#waiting.get(socket) ?? 0) + 1;
    if (waiting > this.#options.pipelined) socket.destroy();
    // Further requests of the same read arrive after the end.
    if (socket.destroyed) return false;
    this.#waiting.set(socket, waiting);
    this.#follow(request, response);
    return true;
  }

  /** Keeps the connection of this request open until the response is sent. */
  trust({ socket, method }: IncomingMessage): void {
    this.#idle.delete(socket);
    this.#asked.delete(socket);
    // Node.js restores the server's limit for the next request. The socket of an injected call has none.
    if (method !== 'GET' && method !== 'HEAD' && 'setTimeout' in socket) socket.setTimeout(this.#options.workMs);
  }

  /** The newest response that was begun on a connection, whether or not it has ended. */
  lastResponseOn(socket: Socket): ServerResponse | undefined {
    return this.#last.get(socket);
  }

  /** Ends the connections on which no whole request has arrived. They would keep a closing server open. */
  endUnsent(): void {
    for (const socket of this.#open) if (!this.#last.get(socket)?.req.complete) socket.destroy();
  }

  #add(socket: Socket): void {
    this.#open.add(socket);
    this.#idle.add(socket);
    socket.once('close', () => this.#forget(socket));
    if (this.#open.size <= this.#options.connections || this.#isMakingRoom) return;
    this.#isMakingRoom = true;
    // The first callback runs before the data of the new connections is read, the second after that.
    setImmediate(() => setImmediate(() => this.#makeRoom()));
  }

  #makeRoom(): void {
    this.#isMakingRoom = false;
    for (const sockets of [this.#idle, this.#asked])
      for (const socket of sockets) {
        if (this.#open.size <= this.#options.connections) return;
        this.#forget(socket);
        socket.destroy();
      }
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    this.#idle.delete(socket);
    this.#asked.delete(socket);
  }

  #follow(request: IncomingMessage, response: ServerResponse): void {
    const { socket, headers } = request;
    this.#last.set(socket, response);
    const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
    if (!hasBody) {
      this.#idle.delete(socket);
      this.#asked.add(socket);
    }
    response.once('close', () => {
      this.#waiting.set(socket, (this.#waiting.get(socket) ?? 1) - 1);
      if (!this.#open.has(socket)) return;
      this.#asked.delete(socket);
      this.#idle.delete(socket);
      this.#idle.add(socket);
      if (!request.complete) this.#endUnlessComplete(request);
    });
  }

  #endUnlessComplete(request: IncomingMessage): void {
    const timer = setTimeout(() => {
      if (!request.complete) request.socket.destroy();
    }, this.#options.lingerMs);
    request.socket.once('close', () => clearTimeout(timer));
  }
}
