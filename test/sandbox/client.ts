import type { Clock } from '../../src/core/clock.js';
import { systemClock } from '../../src/core/clock.js';
import type { Sandbox } from '../../src/sandbox/sandbox.js';

/** A clock that tests move; sleeps take real time. */
export class TestClock implements Clock {
  #ahead = 0;
  now = () => Date.UTC(2026, 0, 15) + this.#ahead;
  monotonic = () => this.#ahead;
  sleep = systemClock.sleep;
  forward(seconds: number): void {
    this.#ahead += seconds * 1000;
  }
}

export interface TokenResponse {
  access_token: string;
  expires_in: number;
  token_type: string;
  refresh_token: string;
  company_id: string;
}

/** POST /auth/token with the sandbox's own client credentials; `form` adds to them or replaces them. */
export function postToken(sandbox: Sandbox, form: Record<string, string>): Promise<Response> {
  const credentials = { client_id: sandbox.clientId, client_secret: sandbox.clientSecret.reveal() };
  return fetch(new URL('/auth/token', sandbox.url), { method: 'POST', body: new URLSearchParams({ ...credentials, ...form }) });
}

export function refresh(sandbox: Sandbox, token: string): Promise<Response> {
  return postToken(sandbox, { grant_type: 'refresh_token', refresh_token: token });
}

export async function accessTokenFor(sandbox: Sandbox, companyId: string): Promise<string> {
  const answer = await refresh(sandbox, sandbox.issueRefreshToken(companyId).reveal());
  return ((await answer.json()) as TokenResponse).access_token;
}

export function get(sandbox: Sandbox, token: string, path: string, query: Record<string, string> = {}): Promise<Response> {
  const url = new URL(path, sandbox.url);
  url.search = new URLSearchParams(query).toString();
  return fetch(url, { headers: { authorization: `Bearer ${token}` } });
}

export function post(sandbox: Sandbox, token: string, path: string, body: unknown): Promise<Response> {
  return fetch(new URL(path, sandbox.url), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}
