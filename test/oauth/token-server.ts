import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the server does with the next request instead of answering properly. `rotate` says whether it grants first. */
export type Misdeed =
  | { kind: 'drop'; rotate: boolean }
  | { kind: 'answer'; status: number; body?: unknown; headers?: Record<string, string> }
  | {
      kind: 'change';
      change: (grant: Record<string, unknown>) => Record<string, unknown>;
      /** Between the grant and its answer. */
      during?: () => Promise<void>;
    }
  | { kind: 'before'; work: () => Promise<void> }
  | { kind: 'after'; work: () => Promise<void> };

/** An authorization server of the tests: each refresh token is good for one use, and one use only. */
export class TokenServer {
  /** Requests as received: form fields, in order. */
  readonly received: Record<string, string>[] = [];
  readonly misdeeds: Misdeed[] = [];
  lifetime = 1799;
  readonly #companies = new Map<string, string>();
  readonly #server: Server;
  #serial = 0;
  /** Requests being answered, now and at most. */
  #now = 0;
  most = 0;

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<TokenServer> {
    const server = new TokenServer();
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/tenant`);
  }

  /** A refresh token, or an authorization code, that is good once. */
  issue(companyId: string): string {
    this.#serial += 1;
    const token = `refresh-token-${this.#serial}-of-${companyId}`;
    this.#companies.set(token, companyId);
    return token;
  }

  /** How often each refresh token was sent. */
  uses(token: string): number {
    return this.received.filter((fields) => fields['refresh_token'] === token).length;
  }

  revoke(token: string): void {
    this.#companies.delete(token);
  }

  isLive(token: string): boolean {
    return this.#companies.has(token);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const fields = Object.fromEntries(new URLSearchParams(body));
    this.received.push(fields);
    this.#now += 1;
    this.most = Math.max(this.most, this.#now);
    const misdeed = request.url === '/tenant/auth/token' ? this.misdeeds.shift() : undefined;
    if (misdeed?.kind === 'before') await misdeed.work();
    const answer = misdeed?.kind === 'answer' || (misdeed?.kind === 'drop' && !misdeed.rotate) ? undefined : this.#grant(fields);
    if (misdeed?.kind === 'after') await misdeed.work();
    if (misdeed?.kind === 'change') await misdeed.during?.();
    this.#now -= 1;
    if (misdeed?.kind === 'drop') return void response.socket?.destroy();
    if (misdeed?.kind === 'answer') {
      const text = typeof misdeed.body === 'string' ? misdeed.body : JSON.stringify(misdeed.body ?? {});
      return void response.writeHead(misdeed.status, misdeed.headers).end(text);
    }
    if (!answer) return void response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}');
    const grant = misdeed?.kind === 'change' ? misdeed.change(answer) : answer;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(grant));
  }

  #grant(fields: Record<string, string>): Record<string, unknown> | undefined {
    const spent = fields['refresh_token'] ?? fields['code'] ?? '';
    const companyId = this.#companies.get(spent);
    if (companyId === undefined || !this.#companies.delete(spent)) return undefined;
    return {
      access_token: `access-token-${this.#serial + 1}-of-${companyId}`,
      expires_in: this.lifetime,
      token_type: 'Bearer',
      refresh_token: this.issue(companyId),
      company_id: companyId.toUpperCase(),
    };
  }
}
