import { MusterError } from '../../core/errors.js';
import type { ListProof } from '../../db/tables/list-proofs.js';

/** Most lists that a message names; it counts the others. */
const MOST_NAMED = 20;

/** Throws `lists_unproved`, which names them, where any of the lists was never proved complete, or is late. A list that its company does not have needs no proof. */
export function requireProofs(resource: string, lists: readonly ListProof[]): void {
  const lacking = lists.filter(({ verifiedAt, isLate, isUnavailable }) => (verifiedAt === null && !isUnavailable) || isLate);
  if (lacking.length === 0) return;
  const named = lacking.slice(0, MOST_NAMED).map(({ environment, companyId, verifiedAt }) => {
    const why = verifiedAt === null ? 'never proved' : `late, last proved ${verifiedAt.toISOString()}`;
    return `${environment} ${companyId} (${why})`;
  });
  const more = lacking.length > named.length ? `, and ${lacking.length - named.length} more` : '';
  throw new MusterError(
    'lists_unproved',
    `Nothing was exported: ${lacking.length} of ${lists.length} lists of ${resource} have no proof, or a late one: ${named.join(', ')}${more}. ` +
      'Sync them until they are proved, or export without requiring proofs.',
  );
}
