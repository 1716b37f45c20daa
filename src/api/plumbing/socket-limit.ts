import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface SocketLimitOptions {
  /** How many there may be. */
  readonly connections: number;
  /** Requests that may wait on one connection for their answers. */
  readonly pipelined: number;
  /** How long the rest of a request may take that is answered already. */
  readonly lingerMs: number;
  /** How long nothing may move on a connection whose trusted caller has something changed. */
  readonly workMs: number;
}

/**
 * Bounds the connections of a server so that a new one is always let in, for it may be a probe's. Each connection is in one of three states:
 *
 * - *idle*: nobody waits for an answer. It was just opened, its request is still arriving, or the last answer was given.
 * - *asked*: a request without a body, or one that is being answered, of a caller who has shown no right token.
 * - *trusted*: its caller has shown a right token; `trust` says so, and it holds for one request.
 *
 * Connections too many end the ones that have been idle for longest, or else the ones that have been asked for longest, and never trusted ones.
 * Before they end, whatever has arrived on them is read: many connections may be taken at once, and one of them may be the probe.
 *
 * A request that was answered before its body came (401, 404, 405) has `lingerMs` for the rest: closed at once, the connection would be reset
 * under clients that write before they read. What arrives meanwhile is thrown away.
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
    // Beyond, even trusted callers are turned away, and whoever comes in one rush of so many.
    server.maxConnections = this.#options.connections * 3;
    server.on('connection', (socket) => this.#add(socket));
  }

  /** Whether the request is to be answered. Where not, its connection has ended. */
  admit(request: IncomingMessage, response: ServerResponse): boolean {
    const { socket } = request;
    const waiting = (this.#waiting.get(socket) ?? 0) + 1;
    if (waiting > this.#options.pipelined) socket.destroy();
    // Further requests of the same read arrive behind the end.
    if (socket.destroyed) return false;
    this.#waiting.set(socket, waiting);
    this.#follow(request, response);
    return true;
  }

  /** Keeps the connection of this request open until the answer is given. */
  trust({ socket, method }: IncomingMessage): void {
    this.#idle.delete(socket);
    this.#asked.delete(socket);
    // Node.js sets the server's own limit again for the next request. The socket of a call from within the process has none.
    if (method !== 'GET' && method !== 'HEAD' && 'setTimeout' in socket) socket.setTimeout(this.#options.workMs);
  }

  /** The newest answer that was begun on a connection, be it given by now or not. */
  lastResponseOn(socket: Socket): ServerResponse | undefined {
    return this.#last.get(socket);
  }

  /** Ends the connections on which no whole request has come. A server that is closed would stay open for them. */
  endUnsent(): void {
    for (const socket of this.#open) if (!this.#last.get(socket)?.req.complete) socket.destroy();
  }

  #add(socket: Socket): void {
    this.#open.add(socket);
    this.#idle.add(socket);
    socket.once('close', () => this.#forget(socket));
    if (this.#open.size <= this.#options.connections || this.#isMakingRoom) return;
    this.#isMakingRoom = true;
    // The first is called before what arrived on the new connections is read, the second behind that.
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
