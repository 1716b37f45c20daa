import { setTimeout as sleep } from 'node:timers/promises';
import type { Slot } from './slot.js';

/** Calls that programs make all the time. */
const CALLS = [
  '/api/overview',
  '/api/companies?limit=20',
  '/api/changes?limit=50',
  '/api/runs?limit=20',
  '/api/runs?status=running',
  '/api/issues?status=ongoing',
  '/api/holds?status=open',
  '/api/list-counts',
  '/api/resources',
  '/api/schema',
  '/api/last-night',
  '/api/budget',
  '/api/notifications',
  '/api/audit?limit=20',
  '/metrics',
];
const PAGES = ['/', '/companies', '/runs', '/holds', '/schema', '/queue', '/settings', '/audit'];

const PAUSE_MS = 60;
/** As often as a load balancer asks. */
const PROBE_MS = 200;
/** The end of a request that gets no answer. */
const LIMIT_MS = 30_000;

/** Reads APIs as programs, people and a load balancer do, and records what they were refused. */
export class Readers {
  /** Requests that failed, although the process served: a line each. */
  readonly faults: string[] = [];
  answered = 0;
  /** Requests that failed while the process was exchanged. */
  dropped = 0;
  readonly #adminToken: string;
  readonly #ending = new AbortController();
  readonly #loops: Promise<void>[] = [];

  constructor(adminToken: string) {
    this.#adminToken = adminToken;
  }

  /** Signs in at the first API: the session must hold at all of them. */
  async start(apis: readonly Slot[], company: string): Promise<void> {
    const response = await fetch(`${apis[0]!.url}/login`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams({ token: this.#adminToken }),
    });
    const cookie = response.headers.get('set-cookie')?.split(';')[0];
    if (cookie === undefined) throw new Error(`Nobody was signed in: ${response.status}`);
    const authorization = `Bearer ${this.#adminToken}`;
    const calls = [...CALLS, `/api/companies/test/${company}`, `/api/runs?company_id=${company}`];
    const pages = [...PAGES, `/companies/test/${company}`];
    for (const api of apis) {
      this.#loops.push(this.#repeat(PROBE_MS, () => this.#probe(api)));
      this.#loops.push(this.#repeat(PAUSE_MS, this.#inTurn(api, calls, { authorization })));
      this.#loops.push(this.#repeat(PAUSE_MS, this.#inTurn(api, pages, { cookie })));
    }
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#loops);
  }

  /** A call of the API. Undefined if it failed, which is recorded. */
  async call(api: Slot, path: string, init: RequestInit = {}): Promise<Response | undefined> {
    const headers = { authorization: `Bearer ${this.#adminToken}`, ...(init.headers as Record<string, string>) };
    return this.#send(api, path, { ...init, headers });
  }

  #inTurn(api: Slot, paths: readonly string[], headers: Record<string, string>): () => Promise<void> {
    let next = 0;
    return async () => {
      // A load balancer sends nothing to a process that is not ready.
      if (api.isReady) await this.#send(api, paths[next++ % paths.length]!, { headers });
    };
  }

  async #probe(api: Slot): Promise<void> {
    const { phase, exchanges } = api;
    const response = await fetch(`${api.url}/readyz`, { signal: AbortSignal.timeout(LIMIT_MS) }).catch(() => undefined);
    const body = await response?.text().catch(() => undefined);
    api.isReady = response?.status === 200;
    if (!api.isReady && phase === 'serving' && api.phase === 'serving' && api.exchanges === exchanges)
      this.faults.push(`${api.name} (${api.version}) was not ready: ${response?.status} ${body}`);
  }

  async #send(api: Slot, path: string, init: RequestInit): Promise<Response | undefined> {
    const { version, exchanges, phase } = api;
    const fault = await fetch(api.url + path, { redirect: 'manual', signal: AbortSignal.timeout(LIMIT_MS), ...init }).then(
      async (response) => {
        const text = await response.text();
        const isStrange = response.status >= 500 || (init.method === undefined && response.status !== 200);
        return isStrange ? `${response.status} ${text.slice(0, 300)}` : new Response(text, response);
      },
      (error: Error) => `${error.message}: ${(error.cause as Error | undefined)?.message ?? ''}`,
    );
    if (typeof fault !== 'string') {
      this.answered += 1;
      return fault;
    }
    const wasExchanged = phase !== 'serving' || api.phase !== 'serving' || api.exchanges !== exchanges;
    if (wasExchanged && api.mayDrop) this.dropped += 1;
    else this.faults.push(`${api.name} (${version}, ${phase}) ${init.method ?? 'GET'} ${path}: ${fault}`);
    return undefined;
  }

  async #repeat(pauseMs: number, work: () => Promise<void>): Promise<void> {
    for (; !this.#ending.signal.aborted; await sleep(pauseMs)) await work();
  }
}
