import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { openDatabase } from '../../src/db/database.js';
import { HttpClient } from '../../src/http/http-client.js';
import { Cipher } from '../../src/oauth/cipher.js';
import { Connections } from '../../src/oauth/connections.js';
import { Keyring } from '../../src/oauth/keyring.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import { Vault } from '../../src/oauth/vault.js';
import { createLogger } from '../../src/observability/logger.js';

/** What the process is told at its start. */
export interface KeeperSettings {
  readonly database: string;
  readonly provider: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Base64 of 32 bytes. */
  readonly key: string;
}

/** The parts of a process that keeps tokens, as app.ts puts them together. */
export function keeperParts({ database, provider, clientId, clientSecret, key }: KeeperSettings) {
  const db = openDatabase({ url: database, poolSize: 3 });
  const url = new URL(provider);
  const settings = {
    baseUrl: url,
    authUrl: url,
    clientId,
    clientSecret: new Secret(clientSecret),
    redirectUri: new URL('http://127.0.0.1/oauth/callback'),
  };
  return {
    db,
    clock: systemClock,
    logger: createLogger({ level: 'fatal' }),
    vault: new Vault(new Cipher(new Keyring([{ id: 'k', key: new Secret(key) }]))),
    connections: new Connections(db, systemClock),
    endpoints: { test: new TokenEndpoint(new HttpClient(), settings, systemClock) },
  };
}
