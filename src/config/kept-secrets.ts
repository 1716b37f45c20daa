import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { keptSecret, lookAtSecret } from '../core/home.js';
import type { EncryptionKey, Secret } from '../core/secret.js';
import type { Logger } from '../observability/logger.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { Config } from './config.js';

const EXPOSED =
  'other users could read the admin token until now: if one may have, delete the file, and the next start makes a new token';

/** The file of the admin token if no variable sets one. */
export function adminTokenPath({ home }: Pick<Config, 'home'>): string {
  return join(home, 'admin-token');
}

function encryptionKeyPath({ home }: Pick<Config, 'home'>): string {
  return join(home, 'encryption-key');
}

/** The ring of the key that is kept under `home`. */
function keptRing(key: Secret): readonly EncryptionKey[] {
  registerSecret(key.reveal(), { lasting: true });
  return [{ id: 'home', key }];
}

/**
 * The admin token of the configuration, or one that is generated at first use and kept under `home`. Warns if other users could read it there.
 * Throws `invalid_configuration`.
 */
export async function adminToken(config: Pick<Config, 'home' | 'adminToken'>, logger?: Pick<Logger, 'warn'>): Promise<Secret> {
  const generate = () => randomBytes(32).toString('base64url');
  const onExposed = (file: string) => logger?.warn({ file }, EXPOSED);
  const token = config.adminToken ?? (await keptSecret(adminTokenPath(config), { generate, onExposed }));
  registerSecret(token.reveal(), { lasting: true });
  return token;
}

/**
 * The keys of the configuration. If it has none, which is allowed only with the embedded database, one key is generated at first use and
 * kept under `home`. Throws `invalid_configuration`.
 */
export async function encryptionKeys(config: Pick<Config, 'home' | 'encryptionKeys'>): Promise<readonly EncryptionKey[]> {
  if (config.encryptionKeys) return config.encryptionKeys;
  return keptRing(await keptSecret(encryptionKeyPath(config), { generate: () => randomBytes(32).toString('base64') }));
}

/** Reads the keys without generating one; undefined if none is kept yet. Throws `invalid_configuration` if the file cannot be read. */
export async function lookAtKeys(config: Pick<Config, 'home' | 'encryptionKeys'>): Promise<readonly EncryptionKey[] | undefined> {
  if (config.encryptionKeys) return config.encryptionKeys;
  const kept = await lookAtSecret(encryptionKeyPath(config));
  return kept && keptRing(kept.secret);
}
