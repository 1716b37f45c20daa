import { systemClock } from '../../src/core/clock.js';
import { Secret } from '../../src/core/secret.js';
import { openDatabase } from '../../src/db/connection/database.js';
import { Keyring } from '../../src/oauth/cipher.js';
import { type OauthRoom, oauthRoom } from '../oauth/fixture.js';

/** What a process that refreshes tokens is told at its start. */
export interface TokenSettings {
  readonly database: string;
  readonly provider: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Base64 of 32 bytes. */
  readonly key: string;
}

/** The room in a process of its own, with a small pool. */
export function tokenRoom({ database, provider, key, ...client }: TokenSettings): OauthRoom {
  const db = openDatabase({ url: database, poolSize: 3 });
  const keyring = new Keyring([{ id: 'k', key: new Secret(key) }]);
  return oauthRoom(db, { url: new URL(provider), ...client }, systemClock, keyring);
}
