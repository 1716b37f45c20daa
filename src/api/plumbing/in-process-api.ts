import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MusterError } from '../../core/errors.js';
import type { Caller } from './caller.js';

/** A call of the API as anybody could make it with a token. */
export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** From `/api/` on, with its query. */
  readonly path: string;
  readonly body?: unknown;
}

export interface ApiResponse {
  readonly status: number;
  /** What the JSON of the answer says; undefined where it has none. */
  readonly body: unknown;
}

/** Answers a request at an address where there is nothing. */
export type AnswerUnknown = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>;

/** What the pages of the control room are given of the API. */
export interface ApiForPages {
  readonly calls: Pick<InProcessApi, 'call' | 'follow'>;
  /** Who bears this token; undefined where it is a wrong one, which is noted for the address that it came from. */
  readonly authenticate: (token: string, address: string) => Promise<Caller | undefined>;
  /** Takes over who asks for a page at an address where there is nothing (`asksForPage`). */
  readonly onUnknown: (answer: AnswerUnknown) => void;
  /** Told of every request of somebody who is signed in: its connection stays open until the answer is given. */
  readonly trust: (request: FastifyRequest) => void;
}

/** Parts of a path that are resolved before the path is looked up, encoded or not: with `..` in place of an id, another call would be made. */
const DOTS = /^[^?]*\/(?:\.|%2e){1,2}(?:[/?]|$)/i;

/**
 * Calls of the API from within the process, for somebody who has shown a token before: the pages of the control room make them for whoever is signed
 * in. They pass every check that a call from outside passes. A ticket names the caller: a random text that is good for one call, and that nobody
 * outside can know.
 */
export class InProcessApi {
  readonly #app: FastifyInstance;
  readonly #callers = new Map<string, Caller>();

  /** To be made before the hooks that look at requests. */
  constructor(app: FastifyInstance) {
    this.#app = app;
    // A request from within lacks what Node.js makes of the headers of one from outside.
    app.addHook('onRequest', async ({ raw }) => {
      raw.headersDistinct ??= Object.fromEntries(
        Object.entries(raw.headers).map(([name, value]) => [name, [value ?? []].flat()]),
      );
    });
  }

  /** Whom a ticket was made out for; undefined for every other token. */
  redeem(token: string): Caller | undefined {
    const caller = this.#callers.get(token);
    this.#callers.delete(token);
    return caller;
  }

  /** Throws `not_found` for a path that would lead elsewhere than it says. */
  call(caller: Caller, { method, path, body }: ApiCall): Promise<ApiResponse> {
    return this.#asCaller(caller, path, async (authorization) => {
      const answer = await this.#app.inject({
        method,
        url: path,
        headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { payload: JSON.stringify(body) }),
      });
      const isJson = /json/.test(String(answer.headers['content-type']));
      return { status: answer.statusCode, body: isJson && answer.payload !== '' ? JSON.parse(answer.payload) : undefined };
    });
  }

  /** The bytes of an answer that goes on. Whoever does not read them to their end destroys the stream. Throws as `call` does. */
  follow(caller: Caller, path: string): Promise<{ status: number; stream: Readable }> {
    return this.#asCaller(caller, path, async (authorization) => {
      const answer = await this.#app.inject({ method: 'GET', url: path, headers: { authorization }, payloadAsStream: true });
      const stream = answer.stream();
      // Nobody reads on: whoever writes the answer is told as if a connection had ended.
      stream.once('close', () => answer.raw.res.destroy());
      return { status: answer.statusCode, stream };
    });
  }

  async #asCaller<T>(caller: Caller, path: string, work: (authorization: string) => Promise<T>): Promise<T> {
    if (DOTS.test(path)) throw new MusterError('not_found', 'There can be nothing at this address: `.` and `..` are no ids.');
    const ticket = randomBytes(32).toString('base64url');
    this.#callers.set(ticket, caller);
    try {
      return await work(`Bearer ${ticket}`);
    } finally {
      // A call that came to no route has not redeemed it.
      this.#callers.delete(ticket);
    }
  }
}
