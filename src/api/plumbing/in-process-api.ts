import { randomBytes } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MusterError } from '../../core/errors.js';
import type { Caller } from './caller.js';
import { STOPPING } from './problem.js';

/** A call of the API. */
export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** The path from `/api/` on, with its query. */
  readonly path: string;
  readonly body?: unknown;
}

export interface ApiResponse {
  readonly status: number;
  /** The parsed JSON; undefined where the response has none. */
  readonly body: unknown;
}

/** Responds to a request whose address does not exist. */
export type AnswerUnknown = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>;

/** The part of the API that the pages of the control room use. */
export interface ApiForPages {
  readonly calls: Pick<InProcessApi, 'call' | 'follow'>;
  /** Finds the caller who has this token; undefined for a wrong one, which is recorded for the address that it came from. */
  readonly authenticate: (token: string, address: string) => Promise<Caller | undefined>;
  /** Sets the response to a browser that asks for an unknown page (`asksForPage`). */
  readonly onUnknown: (answer: AnswerUnknown) => void;
  /** Called for every request with a session: its connection stays open until the response is sent. */
  readonly trust: (request: FastifyRequest) => void;
}

/** Parts of a path that are resolved before the path is looked up, encoded or not: with `..` in place of an id, another call would be made. */
const DOTS = /^[^?]*\/(?:\.|%2e){1,2}(?:[/?]|$)/i;

/**
 * Calls the API from within the process: the pages of the control room do so for the person who is signed in. These calls pass every check that a call
 * from outside passes. A ticket names the caller: a random text that is valid for one call and never leaves the process.
 */
export class InProcessApi {
  readonly #app: FastifyInstance;
  readonly #callers = new Map<string, Caller>();

  /** To be created before the hooks that look at requests are added. */
  constructor(app: FastifyInstance) {
    this.#app = app;
    // An injected request lacks the member `headersDistinct` that Node.js adds.
    app.addHook('onRequest', async ({ raw }) => {
      raw.headersDistinct ??= Object.fromEntries(
        Object.entries(raw.headers).map(([name, value]) => [name, [value ?? []].flat()]),
      );
    });
  }

  /** Returns the caller of a ticket, which is then spent; undefined for every other token. */
  redeem(token: string): Caller | undefined {
    const caller = this.#callers.get(token);
    this.#callers.delete(token);
    return caller;
  }

  /** Throws `not_found` for a path that would lead elsewhere than it says, and `stopping` once the server is closed. */
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

  /** Streams a long response. A reader that stops early must destroy the stream. Throws as `call` does. */
  follow(
    caller: Caller,
    path: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; headers: OutgoingHttpHeaders; stream: Readable }> {
    return this.#asCaller(caller, path, async (authorization) => {
      const answer = await this.#app.inject({
        method: 'GET',
        url: path,
        headers: { ...headers, authorization },
        payloadAsStream: true,
      });
      const stream = answer.stream();
      // The reader has stopped: the writer sees it as a closed connection.
      stream.once('close', () => answer.raw.res.destroy());
      return { status: answer.statusCode, headers: answer.headers, stream };
    });
  }

  async #asCaller<T>(caller: Caller, path: string, work: (authorization: string) => Promise<T>): Promise<T> {
    if (DOTS.test(path)) throw new MusterError('not_found', 'There can be nothing at this address: `.` and `..` are no ids.');
    const ticket = randomBytes(32).toString('base64url');
    this.#callers.set(ticket, caller);
    try {
      return await work(`Bearer ${ticket}`);
    } catch (error) {
      if ((error as Partial<FastifyError>).code !== 'FST_ERR_REOPENED_CLOSE_SERVER') throw error;
      throw new MusterError('stopping', STOPPING, { cause: error });
    } finally {
      // A call that reached no route has not redeemed the ticket.
      this.#callers.delete(ticket);
    }
  }
}
