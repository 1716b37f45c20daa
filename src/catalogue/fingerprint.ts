import { createHash } from 'node:crypto';
import { isObject } from '../core/json.js';
import { identityOf } from '../privacy/rules.js';
import type { Endpoint } from './endpoint.js';

/**
 * Raise it when the pagers' states, or the ledger's hashes and digests, change their meaning: then old checkpoints and ledgers are not
 * used, and walks start again.
 */
const CHECKPOINT_FORMAT = 4;

/**
 * SHA-256 over everything that decides the meaning of a checkpoint, a record's id and its stored text. Checkpoints and ledgers of another fingerprint
 * are not used. `order`, `etag`, `deleteGuard`, `optional`, `schedule`, `columns`, `flatten` and `references` are left out: they judge a walk,
 * save it work, or say how its records are shown, but do not change the walk's path.
 */
export function fingerprint({ privacy, ...endpoint }: Endpoint): string {
  const { resource, method, base, path, query, body, pager, id, envelope, fields, parent } = endpoint;
  const constants = { base, query, body, fields, privacy: privacy && identityOf(privacy) };
  const parts = { format: CHECKPOINT_FORMAT, resource, method, path, pager, id, envelope, parent: parent ?? null, ...constants };
  return createHash('sha256').update(canonical(parts)).digest('hex');
}

/** JSON with the members of every object sorted by name. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}
