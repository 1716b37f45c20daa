import { randomBytes, randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import type { Database } from '../../src/db/connection/database.js';
import { findToken, saveToken } from '../../src/db/tables/tokens.js';
import { HttpClient } from '../../src/http/http-client.js';
import { AccessTokenManager } from '../../src/oauth/access-token-manager.js';
import { Authorization } from '../../src/oauth/authorization.js';
import { AuthorizationFlows } from '../../src/oauth/authorization-flows.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { ConnectLinks } from '../../src/oauth/connect-links.js';
import { Connections } from '../../src/oauth/connections.js';
import { Onboarding } from '../../src/oauth/onboarding.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import { UnsavedTokenPairs } from '../../src/oauth/unsaved-token-pairs.js';
import { type TokenPair, Vault } from '../../src/oauth/vault.js';
import type { TokenServer } from './token-server.js';

const KEYRING = new Keyring([{ id: 'k1', key: new Secret(randomBytes(32).toString('base64')) }]);
export const CLIENT_SECRET = 'client-secret-of-tests';

export const newCompany = (): CompanyKey => ({ environment: 'test', companyId: randomUUID() });

/** An authorization server and the client that it knows. */
interface Provider {
  readonly url: URL;
  readonly clientId?: string;
  readonly clientSecret?: string;
}

export type OauthRoom = ReturnType<typeof oauthRoom>;

/** The room as the program puts it together, on the given database and authorization server. */
export function oauthRoom(
  db: Database,
  { url, clientId = 'client-1', clientSecret = CLIENT_SECRET }: Provider,
  clock: Clock = systemClock,
  keyring = KEYRING,
) {
  const cipher = new Cipher(keyring);
  const vault = new Vault(cipher);
  const connections = new Connections(db, clock);
  const provider = {
    baseUrl: url,
    authUrl: url,
    clientId,
    clientSecret: new Secret(clientSecret),
    redirectUri: new URL('http://127.0.0.1/oauth/callback'),
  };
  const endpoint = new TokenEndpoint(new HttpClient(), provider, clock);
  const endpoints = { test: endpoint };
  const logger = pino({ enabled: false });
  const received = new UnsavedTokenPairs(logger, { retries: 1, pauseMs: 20 });
  const deps = { db, vault, connections, endpoints, received, clock, logger, random: () => 0.5 };
  const manager = new AccessTokenManager(deps);
  return { cipher, vault, connections, provider, endpoint, deps, manager, onboarding: new Onboarding(deps) };
}

/** The same room, which puts failed attempts off for so long that none comes due while a test is held up. */
export function patient(room: OauthRoom): OauthRoom {
  const deps = { ...room.deps, random: () => 20 };
  return { ...room, deps, manager: new AccessTokenManager(deps) };
}

/** The flow from a connect link on, as one process has it. */
export function authorizationFlow({ deps, provider }: OauthRoom, clock: Clock, keyring = KEYRING) {
  const links = new ConnectLinks({ ...deps, clock, keyring, publicUrl: new URL('https://muster.example/base/') });
  const flows = new AuthorizationFlows(deps.db, keyring, clock);
  const authorization = new Authorization({ ...deps, clock, flows, links, providers: { test: provider } });
  return { links, authorization };
}

type Flow = { readonly authorization: Authorization };

/** Opens the link with this token: the state of the flow that it starts, and the mark that the browser keeps. */
export async function startedFlow({ authorization }: Flow, token: string): Promise<{ state: string; mark: string }> {
  const started = await authorization.start(token);
  if (!('location' in started)) throw new Error(started.failure);
  return { state: started.location.searchParams.get('state')!, mark: started.mark };
}

export async function stateOf(flow: Flow, token: string): Promise<string> {
  return (await startedFlow(flow, token)).state;
}

/** A company that is onboarded with a token of the server's; `token` is the refresh token that is stored. */
export async function onboarded(room: OauthRoom, server: TokenServer) {
  const company = newCompany();
  await room.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) });
  return { company, token: await storedRefreshToken(room, company) };
}

/** What another process does when the company's administrator went through the consent page; gives the new access token. */
export async function authorizeElsewhere(room: OauthRoom, server: TokenServer, company: CompanyKey, refreshAfterSeconds = 900) {
  const grant = await room.endpoint.refresh(new Secret(server.issue(company.companyId)));
  if (grant.kind !== 'granted' || !grant.refreshToken) throw new Error(`Not granted: ${grant.kind}`);
  await storePair(room, company, { ...grant, refreshToken: grant.refreshToken, refreshAfterSeconds });
  return grant.accessToken.reveal();
}

/** Stores a pair past the onboarding. */
export async function storePair({ vault, deps }: OauthRoom, company: CompanyKey, pair: TokenPair): Promise<void> {
  await saveToken(deps.db.prisma, { company, pair: vault.seal(company, pair) });
}

export async function storedRefreshToken(room: OauthRoom, company: CompanyKey): Promise<string> {
  return room.vault.openRefresh(await findToken(room.deps.db.prisma, company)).reveal();
}

/** As after a refresh that was granted, with no refusal in ten minutes: refreshes go side by side. */
export async function trustTokens(db: Database): Promise<void> {
  await db.pool.query(`
    UPDATE muster.refresh_breakers SET is_trusted = TRUE, server_started_at = pg_postmaster_start_time(), tokens_table = 'muster.tokens'::regclass::oid::bigint,
      watched_since = now(), refused_at = '{}', opened_at = NULL, grants = 0, grants_needed = 1, next_trial_at = NULL, trial_company_id = NULL, trial_epoch = NULL, trial_until = NULL`);
}

/** Sets columns of the company's token row: time passes by back-dating, not by waiting. */
export async function alter(db: Database, { environment, companyId }: CompanyKey, assignments: string): Promise<void> {
  await db.pool.query(`UPDATE muster.tokens SET ${assignments} WHERE environment = $1 AND company_id = $2`, [
    environment,
    companyId,
  ]);
}

export const EXPIRED = `expires_at = now() - interval '1 second', refreshed_at = now() - interval '30 minutes', refresh_at = now()`;
export const DUE = 'refresh_at = now()';

/** Who removes companies in tests. */
export const TESTER = { name: 'test', role: 'admin' };
