import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../core/clock.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import { Secret } from '../core/secret.js';
import type { Database } from '../db/connection/database.js';
import {
  type AuthorizationFlowRow,
  endAuthorizationFlow,
  findAuthorizationFlow,
  insertAuthorizationFlow,
} from '../db/tables/authorization-flows.js';
import type { ConnectLinkRow } from '../db/tables/connect-links.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { Keyring } from './cipher.js';

/** How long a member may take from the link to the consent: signing in, perhaps with a second factor, and choosing. */
export const FLOW_MS = 15 * 60_000;

/** 256 random bits in base64url. */
const STATE = /^[\w-]{43}$/;

export interface StartedFlow {
  /** The consent screen. */
  readonly location: URL;
  /** For the browser that starts the flow, and for no address: with it, and not with the state, the link is shown again. */
  readonly mark: string;
}

/** A flow whose state came back. */
export interface ReturnedFlow extends AuthorizationFlowRow {
  /** The PKCE verifier of its code. */
  readonly verifier: Secret;
  /** Whether it comes from the browser that started the flow. */
  readonly isStarter: boolean;
  readonly isExpired: boolean;
}

/**
 * Flows from a link to the callback. The state passes through the browser and the service, and so tells nothing: it is random, and its hash
 * names the row. The PKCE verifier and the browser's mark follow from the state and a key of the ring, so that any process finds them, and
 * nobody else.
 */
export class AuthorizationFlows {
  readonly #db: Database;
  readonly #keyring: Keyring;
  readonly #clock: Clock;

  constructor(db: Database, keyring: Keyring, clock: Clock) {
    this.#db = db;
    this.#keyring = keyring;
    this.#clock = clock;
  }

  /** Undefined when the link is gone. */
  async start({ id, epoch, companyId }: ConnectLinkRow, provider: ProviderSettings): Promise<StartedFlow | undefined> {
    const state = randomBytes(32).toString('base64url');
    const keyId = this.#keyring.currentId;
    const row = { stateHash: digest(state), linkId: id, epoch, keyId, startedAt: new Date(this.#clock.now()) };
    if (!(await insertAuthorizationFlow(this.#db, row))) return undefined;
    const mark = this.#derive('mark', keyId, state);
    for (const secret of [state, mark]) registerSecret(secret);
    const challenge = digest(this.#derive('verifier', keyId, state));
    return { location: authorizationUrl(provider, { state, challenge, companyId }), mark };
  }

  /** Undefined for a state that no flow has, or whose key has left the ring. */
  async find(state: string, mark: string | undefined): Promise<ReturnedFlow | undefined> {
    const flow = STATE.test(state) ? await findAuthorizationFlow(this.#db, digest(state)) : undefined;
    if (!flow || !this.#keyring.get(flow.keyId)) return undefined;
    registerSecret(state);
    const verifier = this.#derive('verifier', flow.keyId, state);
    registerSecret(verifier);
    return {
      ...flow,
      verifier: new Secret(verifier),
      isStarter: mark !== undefined && isSame(mark, this.#derive('mark', flow.keyId, state)),
      isExpired: flow.startedAt.getTime() + FLOW_MS <= this.#clock.now(),
    };
  }

  /** True the first time that a flow comes back without a code. */
  end({ stateHash }: ReturnedFlow): Promise<boolean> {
    return endAuthorizationFlow(this.#db, { stateHash, at: new Date(this.#clock.now()) });
  }

  /** 43 characters, as PKCE asks for at least. */
  #derive(purpose: 'verifier' | 'mark', keyId: string, state: string): string {
    const key = this.#keyring.get(keyId) as Buffer;
    const derived = Buffer.from(hkdfSync('sha256', key, '', `muster authorization flow ${purpose}`, 32));
    return createHmac('sha256', derived).update(state).digest('base64url');
  }
}

/** GET {auth_url}/auth/authorize, the consent screen; `companyId`, where known, is chosen there beforehand. */
function authorizationUrl(
  provider: ProviderSettings,
  { state, challenge, companyId }: { state: string; challenge: string; companyId: string | null },
): URL {
  const url = new URL(provider.authUrl);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/auth/authorize`;
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: provider.clientId,
    redirect_uri: provider.redirectUri.href,
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...(provider.scope !== undefined && { scope: provider.scope }),
    ...(companyId !== null && { company_id: companyId }),
  }).toString();
  return url;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

function isSame(given: string, right: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
