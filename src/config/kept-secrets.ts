import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { keptSecret } from '../core/home.js';
import type { EncryptionKey, Secret } from '../core/secret.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { Config } from './config.js';

/** The file that keeps the admin token when no variable gives one. */
export function adminTokenPath({ home }: Pick<Config, 'home'>): string {
  return join(home, 'admin-token');
}

/** The token of the configuration, or one that is made at first use and kept under `home`. Throws `invalid_configuration`. */
export async function adminToken(config: Pick<Config, 'home' | 'adminToken'>): Promise<Secret> {
  const token = config.adminToken ?? (await keptSecret(adminTokenPath(config), () => randomBytes(32).toString('base64url')));
  registerSecret(token.reveal(), { lasting: true });
  return token;
}

/**
 * The keys of the configuration. Where it has none, which only the embedded database allows, one key that is made at first use and kept
 * beside that database. Throws `invalid_configuration`.
 */
export async function encryptionKeys(config: Pick<Config, 'home' | 'encryptionKeys'>): Promise<readonly EncryptionKey[]> {
  if (config.encryptionKeys) return config.encryptionKeys;
  const key = await keptSecret(join(config.home, 'encryption-key'), () => randomBytes(32).toString('base64'));
  registerSecret(key.reveal(), { lasting: true });
  return [{ id: 'home', key }];
}
