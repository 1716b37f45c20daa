import { randomBytes, randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import type { Database } from '../../src/db/database.js';
import { HttpClient } from '../../src/http/http-client.js';
import { Cipher } from '../../src/oauth/cipher.js';
import { Connections } from '../../src/oauth/connections.js';
import { TokenKeeper } from '../../src/oauth/keeper.js';
import { Keyring } from '../../src/oauth/keyring.js';
import { Onboarding } from '../../src/oauth/onboarding.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import { Vault } from '../../src/oauth/vault.js';
import type { TokenServer } from './token-server.js';

const KEY = { id: 'k1', key: new Secret(randomBytes(32).toString('base64')) };
export const CLIENT_SECRET = 'client-secret-of-tests';

export const newCompany = (): CompanyKey => ({ environment: 'test', companyId: randomUUID() });

/** The room as the program puts it together, on the given database and authorization server. */
export function oauthRoom(db: Database, server: TokenServer, clock: Clock = systemClock) {
  const cipher = new Cipher(new Keyring([KEY]));
  const vault = new Vault(cipher);
  const connections = new Connections(db, clock);
  const provider = {
    baseUrl: server.url,
    authUrl: server.url,
    clientId: 'client-1',
    clientSecret: new Secret(CLIENT_SECRET),
    redirectUri: new URL('http://127.0.0.1/oauth/callback'),
  };
  const endpoint = new TokenEndpoint(new HttpClient({ connectTimeoutMs: 1_000 }), provider, clock);
  const parts = {
    db,
    vault,
    connections,
    endpoints: { test: endpoint },
    clock,
    logger: pino({ enabled: false }),
    random: () => 0.5,
  };
  return { cipher, vault, connections, endpoint, parts, keeper: new TokenKeeper(parts), onboarding: new Onboarding(parts) };
}

/** A company that is onboarded with a token of the server's; `token` is the refresh token that is stored. */
export async function onboarded(room: ReturnType<typeof oauthRoom>, server: TokenServer) {
  const company = newCompany();
  await room.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) });
  return { company, token: await storedRefreshToken(room, company) };
}

export async function storedRefreshToken(room: ReturnType<typeof oauthRoom>, company: CompanyKey): Promise<string> {
  return room.vault.openRefresh(company, await room.vault.read(room.parts.db.prisma, company)).reveal();
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
