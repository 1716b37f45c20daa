import { randomBytes } from 'node:crypto';
import type { Clock } from '../core/clock.js';
import { withoutSlash } from '../core/own-address.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import { digest, isSameSecret, Secret } from '../core/secret.js';
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

/** Time for a person from the link to the consent: sign-in, perhaps with a second factor, and the choice of a company. */
export const FLOW_MS = 15 * 60_000;

/** 256 random bits in base64url. */
const STATE = /^[\w-]{43}$/;

export interface StartedFlow {
  /** Address of the consent screen. */
  readonly location: URL;
  /** A cookie for the browser that starts the flow. Only with it, not with the state alone, is the link shown again. */
  readonly mark: string;
}

/** A flow whose state was returned to the callback. */
export interface ReturnedFlow extends AuthorizationFlowRow {
  /** The PKCE verifier of its code. */
  readonly verifier: Secret;
  /** The browser is the one that started the flow. */
  readonly isStarter: boolean;
  readonly isExpired: boolean;
}

/**
 * Flows from a link to the callback. The state passes through the browser and the service, so it is random and holds no information; its hash
 * is the key of the row. The PKCE verifier and the browser's mark are derived from the state and an encryption key, so that only Muster's
 * processes can compute them.
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

  /** Undefined if the link does not exist any more. */
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

  /** Undefined if no flow has this state, or its key is not configured any more. */
  async find(state: string, mark: string | undefined): Promise<ReturnedFlow | undefined> {
    const flow = STATE.test(state) ? await findAuthorizationFlow(this.#db, digest(state)) : undefined;
    if (!flow || !this.#keyring.get(flow.keyId)) return undefined;
    registerSecret(state);
    const verifier = this.#derive('verifier', flow.keyId, state);
    registerSecret(verifier);
    return {
      ...flow,
      verifier: new Secret(verifier),
      isStarter: mark !== undefined && isSameSecret(mark, this.#derive('mark', flow.keyId, state)),
      isExpired: flow.startedAt.getTime() + FLOW_MS <= this.#clock.now(),
    };
  }

  /** Returns true the first time that a flow returns without a code. */
  end({ stateHash }: ReturnedFlow): Promise<boolean> {
    return endAuthorizationFlow(this.#db, { stateHash, at: new Date(this.#clock.now()) });
  }

  /** 43 characters, the minimum of PKCE. */
  #derive(purpose: 'verifier' | 'mark', keyId: string, state: string): string {
    return this.#keyring.mac(keyId, `muster authorization flow ${purpose}`, state)!.toString('base64url');
  }
}

/** GET {auth_url}/auth/authorize, the consent screen. `companyId` preselects a company there. */
function authorizationUrl(
  provider: ProviderSettings,
  { state, challenge, companyId }: { state: string; challenge: string; companyId: string | null },
): URL {
  const url = new URL(`${withoutSlash(provider.authUrl)}/auth/authorize`);
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
