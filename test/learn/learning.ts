import { pino } from 'pino';
import { parse } from 'yaml';
import type { Endpoint } from '../../src/catalogue/endpoint.js';
import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { ApiClient, type ApiRequest } from '../../src/http/api-client.js';
import { HttpClient } from '../../src/http/http-client.js';
import type { TokenSource } from '../../src/http/token-source.js';
import { learnList } from '../../src/learn/learn-list.js';
import type { LearnedList } from '../../src/learn/learned-list.js';

export const ANY_TOKEN = new Secret('a.b.c');

export interface Lesson {
  readonly url: URL;
  readonly companyId: string;
  /** With `{company_id}`. */
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly name?: string;
  readonly query?: Record<string, string>;
  readonly known?: Endpoint;
  readonly withSamples?: boolean;
  readonly tokens?: TokenSource;
}

export interface Learned extends LearnedList {
  /** The attempts that left. */
  readonly sent: readonly ApiRequest[];
  /** The entry as a catalogue file has it, parsed. */
  readonly catalogue: Record<string, Record<string, unknown>> | undefined;
}

/** Looks at a list over a real socket, and counts what leaves. */
export async function learn({
  url,
  companyId,
  path,
  method,
  name = 'learned',
  query = {},
  known,
  withSamples = false,
  tokens,
}: Lesson): Promise<Learned> {
  const http = new HttpClient();
  const api = new ApiClient({
    http,
    provider: { baseUrl: url },
    clock: { ...systemClock, sleep: async () => {} },
    logger: pino({ enabled: false }),
  });
  const sent: ApiRequest[] = [];
  try {
    const learned = await learnList(
      {
        name,
        address: { method: method ?? 'GET', path: path.replaceAll('{company_id}', companyId), query, body: {} },
        path,
        isMethodGiven: method !== undefined,
        known,
        withSamples,
      },
      {
        api: { request: (request) => (sent.push(request), api.request(request)) },
        tokens: tokens ?? { get: async () => ANY_TOKEN, renew: async () => ANY_TOKEN, refused: async () => {} },
        requester: { company: companyId, urgent: true },
        signal: AbortSignal.timeout(60_000),
      },
    );
    return { ...learned, sent, catalogue: learned.entry === undefined ? undefined : parse(learned.entry) };
  } finally {
    await http.close();
  }
}
